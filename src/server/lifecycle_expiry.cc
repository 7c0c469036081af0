// Expiry: a timer that asks the store what is due. It holds no list of its own, so that a renewal is one
// write and a restart forgets nothing.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

#include "base/log.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"

namespace osb::server {
namespace {

// The longest sleep: a wall clock that was set forward is noticed after this time. New sandboxes live longer
// than this, so only renewals have to wake the timer.
constexpr auto kLongestSleep = std::chrono::seconds(30);
// The shortest, while removals are under way and their rows still count as due.
constexpr auto kShortestSleep = std::chrono::milliseconds(100);
constexpr auto kRetryAfter = std::chrono::seconds(30);
constexpr std::chrono::seconds kPruneEvery{600};
constexpr std::chrono::seconds kPruneAgain{1};
constexpr size_t kMaxRemovals = 32;

}  // namespace

void Lifecycle::start() { tasks_.spawn(expiry_loop()); }

Task<> Lifecycle::expiry_loop() {
  while (true) {
    auto round = expire_due();
    if (!round) log::error("cannot read what has expired", {{"error", round.error().message}});
    WallTime now = clock_.now();
    if (now >= next_prune_) {
      auto more = store_.events().prune(now);
      if (!more) log::error("cannot forget old events", {{"error", more.error().message}});
      next_prune_ = now + (more.value_or(false) ? kPruneAgain : kPruneEvery);
    }
    auto next = store_.sandboxes().next_expiry();
    WallTime wake = std::min<WallTime>(now + kLongestSleep, next_prune_);
    if (next && *next) wake = std::min(wake, **next);
    std::chrono::microseconds sleep = std::max<std::chrono::microseconds>(wake - now, kShortestSleep);
    next_round_ = now + sleep;
    expiry_timer_.expires_after(sleep);
    // A cancelled wait is a renewal that shortened a life, or the end of this task, which the next round's
    // wait notices.
    co_await expiry_timer_.async_wait(io::asio::as_tuple(io::asio::deferred));
    co_await io::yield();
  }
}

Result<void> Lifecycle::expire_due() {
  for (std::string& id : TRY(store_.sandboxes().due(clock_.now(), kMaxRemovals * 2))) {
    if (expiring_.size() >= kMaxRemovals) break;
    if (expiring_.insert(id).second) tasks_.spawn(expire_job(std::move(id)));
  }
  return {};
}

Task<> Lifecycle::expire_job(std::string id) {
  struct Leave {
    std::set<std::string>& set;
    const std::string& id;
    ~Leave() { set.erase(id); }
  } leave{expiring_, id};
  auto done = co_await expire_locked(id);
  if (done) co_return;
  log::error("cannot remove an expired sandbox, trying again later",
             {{"id", id}, {"error", done.error().message}});
  co_await io::sleep_for(kRetryAfter);
}

// The row is read again under the lock: the sandbox may have been renewed or deleted since it was found to be
// due.
Task<Result<bool>> Lifecycle::expire_locked(std::string id) {
  auto guard = co_await locks_.lock(id);
  auto row = CO_TRY(store_.sandboxes().find(id));
  if (!row || !row->expires || *row->expires > clock_.now()) co_return false;
  CO_TRY(co_await remove_locked(id, "EXPIRED"));
  co_return true;
}

}  // namespace osb::server
