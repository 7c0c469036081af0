#include "server/renew_intents.h"

#include "base/log.h"
#include "sandbox/transitions.h"
#include "server/redis_client.h"
#include "server/renew_intent.h"

namespace osb::server {
namespace {

constexpr io::Duration kAgainFirst = std::chrono::milliseconds(500);
constexpr io::Duration kAgainMost = std::chrono::seconds(10);
// How long Redis holds a question, and how long its answer may take.
constexpr char kHeldFirst[] = "1";
constexpr char kHeldSeconds[] = "5";
constexpr auto kPopLimit = std::chrono::seconds(10);
constexpr auto kTellEvery = std::chrono::seconds(60);

}  // namespace

void RenewIntents::start() {
  for (int64_t i = 0; i < settings_.consumers; ++i) tasks_.spawn(consume());
}

Result<void> RenewIntents::health() const {
  if (away_) return std::unexpected(*away_);
  return {};
}

io::Task<> RenewIntents::consume() {
  for (io::Duration again = kAgainFirst;; again = std::min(again * 2, kAgainMost)) {
    auto redis = co_await RedisClient::open(settings_.address);
    Error why = redis ? co_await consume_from(*redis, again) : std::move(redis.error());
    // A payload that is too long costs the connection: it is gone from the list, and Redis is there.
    if (why.code != Code::too_large) lost(why);
    co_await io::sleep_for(again);
  }
}

// Until it fails. A connection counts when the list could be read once: a login alone does not say that.
io::Task<Error> RenewIntents::consume_from(RedisClient& redis, io::Duration& again) {
  struct Consumer {
    int64_t& connected;
    bool counts = false;
    ~Consumer() { connected -= counts ? 1 : 0; }
  } consumer{connected_};
  while (true) {
    auto reply = co_await redis.ask(
        encode_redis_command({"BRPOP", settings_.queue_key, consumer.counts ? kHeldSeconds : kHeldFirst}),
        kPopLimit);
    if (!reply) {
      // Too long for a payload, and gone from the list.
      if (reply.error().code == Code::too_large) ++dropped_.malformed;
      co_return std::move(reply.error());
    }
    if (!consumer.counts) {
      consumer.counts = true;
      again = kAgainFirst;
      found();
    }
    if (reply->kind == RedisReply::Kind::nothing) {
      tell_dropped();
      continue;
    }
    if (reply->kind != RedisReply::Kind::list || reply->items.size() != 2)
      co_return Error{Code::corrupt, 0, "its answer to BRPOP is none"};
    co_await handle(std::move(reply->items[1].text));
  }
}

io::Task<> RenewIntents::handle(std::string payload) {
  auto intent = parse_renew_intent(payload);
  if (!intent) {
    ++dropped_.malformed;
    co_return tell_dropped();
  }
  if (clock_.now() - intent->observed > kMaxAge) {
    ++dropped_.old;
    co_return tell_dropped();
  }
  if (renewal_.rests(intent->sandbox)) co_return;
  auto row = co_await store_.find(sandbox::Scope::everybody(), intent->sandbox);
  if (!row || !*row || !allows((*row)->status.state, sandbox::Verb::reach)) co_return;
  renewal_.accessed(**row);
}

void RenewIntents::found() {
  ++connected_;
  if (away_) log::info("renewals are taken from redis");
  away_.reset();
}

// Once, and not by each consumer: what changes is that nobody is left.
void RenewIntents::lost(const Error& why) {
  if (connected_ > 0) return;
  bool known = away_ && away_->message == why.message;
  away_ = why;
  if (known) return;
  log::warn("redis is away; sandboxes are renewed by uses of the proxy alone, and it is tried again",
            {{"error", why.message}});
}

void RenewIntents::tell_dropped() {
  if (dropped_.malformed == told_.malformed && dropped_.old == told_.old) return;
  auto now = std::chrono::steady_clock::now();
  if (now < next_tell_) return;
  next_tell_ = now + kTellEvery;
  told_ = dropped_;
  log::warn("renewals from redis were dropped",
            {{"malformed", dropped_.malformed}, {"too_old", dropped_.old}});
}

}  // namespace osb::server
