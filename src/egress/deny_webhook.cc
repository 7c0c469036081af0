#include "egress/deny_webhook.h"

#include <sys/socket.h>

#include <utility>

#include "base/frame.h"
#include "base/log.h"
#include "egress/resolver.h"
#include "egress/way_out.h"
#include "http/client.h"
#include "io/socket.h"
#include "json/decode.h"
#include "json/escape.h"
#include "sys/descriptors.h"

namespace osb::egress {
namespace {

using io::Task;

constexpr size_t kMostWaiting = 256, kMostRemembered = 1024, kMostAnswer = 64 * 1024;
constexpr auto kOnceWithin = std::chrono::seconds(10);
constexpr int kTries = 4;

std::string wire_name(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    std::string_view label = name.substr(0, name.find('.'));
    out.push_back(static_cast<char>(label.size()));
    out.append(label);
    name.remove_prefix(std::min(name.size(), label.size() + 1));
  }
  out.push_back('\0');
  return out;
}

}  // namespace

bool DenyWebhook::is_repeated(const std::string& name, const std::string& id) {
  auto now = std::chrono::steady_clock::now();
  auto key = std::pair(id, name);
  auto found = told_.find(key);
  if (found != told_.end() && now - found->second < kOnceWithin) return true;
  if (told_.size() >= kMostRemembered)
    std::erase_if(told_, [&](const auto& one) { return now - one.second >= kOnceWithin; });
  // Nothing is kept back for want of room: it is told twice at worst.
  if (told_.size() < kMostRemembered) told_[std::move(key)] = now;
  return false;
}

void DenyWebhook::tell(const std::string& name, const std::string& id) {
  if (!hook_ || is_repeated(name, id)) return;
  if (queue_.size() >= kMostWaiting) {
    if (counts_.dropped++ == 0)
      log::warn("denials come faster than the webhook takes them; some are dropped");
    return;
  }
  queue_.push_back({name, id, wall_now()});
  news_.set();
}

Task<> DenyWebhook::run() {
  while (true) {
    co_await news_.wait();
    news_.reset();
    while (!queue_.empty()) {
      Denial next = std::move(queue_.front());
      queue_.pop_front();
      co_await deliver(std::move(next));
    }
  }
}

Task<> DenyWebhook::deliver(Denial denial) {
  std::string body = "{\"hostname\":";
  json::append_string(body, denial.name);
  body += ",\"timestamp\":\"" + format_time(denial.time, 0) + "\",\"source\":\"opensandbox-egress\"";
  body += ",\"sandboxId\":";
  json::append_string(body, denial.id);
  body += "}";
  auto pause = patience_.first;
  for (int i = 1;; ++i) {
    Outcome outcome = co_await post(body);
    if (outcome == Outcome::done) {
      ++counts_.delivered;
      co_return;
    }
    if (outcome == Outcome::refused || i == kTries) break;
    co_await io::sleep_for(pause);
    pause *= 2;
  }
  if (counts_.failed++ == 0) log::warn("the webhook for denials does not take them");
}

Task<DenyWebhook::Outcome> DenyWebhook::post(std::string body) {
  // Who speaks TLS has the same limit, and then a moment to say so.
  auto limit = patience_.answer + (hook_->tls ? std::chrono::seconds(1) : std::chrono::seconds(0));
  auto status = co_await io::with_deadline(limit, "the webhook", exchange(std::move(body)));
  if (!status || *status >= 500) co_return Outcome::again;
  // Redirections are not followed: the operator's address is the only one that is called.
  co_return *status < 300 ? Outcome::done : Outcome::refused;
}

Task<Result<IpAddress>> DenyWebhook::address() {
  if (auto numeric = sandbox::parse_ip(hook_->host)) co_return *numeric;
  std::string name = *sandbox::normal_name(hook_->host);
  DnsQuestion question;
  question.name = name;
  question.wire_name = wire_name(name);
  question.type = kDnsA;
  auto answer = CO_TRY(co_await resolve(network_, std::move(question)));
  for (const DnsRecord& record : answer.answers) {
    if (auto found = record.address()) co_return *found;
  }
  co_return fail(Code::not_found, "the webhook's host has no address");
}

Task<Result<int>> DenyWebhook::exchange_by_carrier(IpAddress where, std::string body) {
  if (!carrier_) co_return fail(Code::unavailable, "nobody is there who speaks TLS");
  // Ours while it is used: one that fails, or is given up in the middle of a frame, is of no use any more.
  io::Socket carrier = *std::exchange(carrier_, std::nullopt);
  auto server = co_await connect_tcp(network_, where, hook_->port);
  if (!server) {
    // Nothing was said to it.
    if (!carrier_) carrier_ = std::move(carrier);
    co_return std::unexpected(std::move(server.error()));
  }
  std::string call = "{\"body\":";
  json::append_string(call, body);
  const int given[] = {server->native_handle()};
  int sent =
      sys::send_with_descriptors(carrier.native_handle(), encode_frame(call + "}"), given, MSG_DONTWAIT);
  if (sent < 0) co_return fail_errno("hand a denial over", -sent);
  server->close();
  FrameReader frames(kMostAnswer);
  while (true) {
    if (auto frame = CO_TRY(frames.next())) {
      auto value = CO_TRY(json::parse(*frame));
      json::Issues issues;
      auto answer = json::Field::root(value, issues, "answer", json::Reading::exact);
      int64_t status = answer["status"].integer().value_or(0);
      if (!carrier_) carrier_ = std::move(carrier);
      if (status < 200 || status > 599) co_return fail(Code::unavailable, "the webhook does not answer");
      co_return static_cast<int>(status);
    }
    char piece[512];
    size_t n = CO_TRY(co_await io::read_some(carrier, piece));
    if (n == 0) co_return fail(Code::unavailable, "who speaks TLS has gone");
    frames.feed({piece, n});
  }
}

Task<Result<int>> DenyWebhook::exchange(std::string body) {
  IpAddress where = CO_TRY(co_await address());
  if (hook_->tls) co_return co_await exchange_by_carrier(where, std::move(body));
  auto socket = CO_TRY(co_await connect_tcp(network_, where, hook_->port));
  http::ClientConnection connection(std::move(socket));
  http::RequestHead head;
  head.method = "POST";
  head.target = hook_->target;
  head.headers.add("Host", hook_->authority);
  head.headers.add("Content-Type", "application/json");
  head.headers.add("User-Agent", "opensandbox-egress");
  auto response = CO_TRY(co_await http::fetch(connection, std::move(head), std::move(body), kMostAnswer));
  co_return response.head.status;
}

}  // namespace osb::egress
