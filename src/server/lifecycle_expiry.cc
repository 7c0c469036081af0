// Expiry: a timer that asks the store what is due. It holds no list of its own, so that a renewal is one
// write and a restart forgets nothing.

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

#include "base/log.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::Reason;

namespace {

// The longest sleep: a wall clock that was set forward is noticed after this time at the latest, where nobody
// tells of it (clock_was_set()). New sandboxes live longer than this, so only renewals have to wake the
// timer.
constexpr auto kLongestSleep = std::chrono::seconds(30);
// The shortest, while removals are under way and their rows still count as due.
constexpr auto kShortestSleep = std::chrono::milliseconds(100);
constexpr io::Duration kRetryFirst = std::chrono::milliseconds(250);
constexpr io::Duration kRetryMost = std::chrono::seconds(30);
// A removal that takes longer hangs: others need not wait for it.
constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::chrono::seconds kPruneEvery{600};
constexpr std::chrono::seconds kPruneAgain{1};
constexpr size_t kMaxRemovals = 32;

}  // namespace

void Lifecycle::start() {
  tasks_.spawn(expiry_loop());
  tasks_.spawn(idle_loop());
}

Task<> Lifecycle::expiry_loop() {
  while (true) {
    auto round = co_await expire_due();
    if (!round) log::error("cannot read what has expired", {{"error", round.error().message}});
    WallTime now = clock_.now();
    if (now >= next_prune_) {
      auto more = co_await store_.prune_events(now);
      if (!more) log::error("cannot forget old events", {{"error", more.error().message}});
      next_prune_ = now + (more.value_or(false) ? kPruneAgain : kPruneEvery);
    }
    auto next = co_await store_.next_expiry();
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

Task<Result<void>> Lifecycle::expire_due() {
  // Those under way are due, too.
  auto most = static_cast<int64_t>(expiring_.size() + kMaxRemovals);
  std::vector<std::string> due = CO_TRY(co_await store_.due(clock_.now(), most));
  size_t busy = busy_removals();
  for (const std::string& id : due) {
    if (expiring_.contains(id)) continue;
    if (++busy > kMaxRemovals) break;
    keep_removing(id, std::nullopt, First::now);
  }
  co_return Result<void>();
}

size_t Lifecycle::busy_removals() const {
  auto now = std::chrono::steady_clock::now();
  return static_cast<size_t>(std::ranges::count_if(
      expiring_, [now](const auto& entry) { return entry.second && now - *entry.second < kPatience; }));
}

void Lifecycle::keep_removing(const std::string& id, std::optional<Reason> reason, First first) {
  auto [entry, is_new] = expiring_.try_emplace(id);
  if (first == First::now) entry->second = std::chrono::steady_clock::now();
  if (is_new) tasks_.spawn(removal_job(id, reason));
}

Task<> Lifecycle::removal_job(std::string id, std::optional<Reason> reason) {
  struct Leave {
    Lifecycle& self;
    const std::string& id;
    ~Leave() {
      // Others wait for its place.
      if (self.expiring_.size() >= kMaxRemovals) self.expiry_timer_.cancel();
      self.expiring_.erase(id);
    }
  } leave{*this, id};
  for (io::Duration again = kRetryFirst;; again = std::min(again * 2, kRetryMost)) {
    if (!expiring_[id]) {
      co_await io::sleep_for(again);
      expiring_[id] = std::chrono::steady_clock::now();
    }
    Result<void> done;
    if (!reason) {
      done = co_await expire_locked(id);
    } else {
      auto guard = co_await locks_.lock(id);
      done = co_await remove_locked(Scope::everybody(), id, *reason);
    }
    if (done) co_return;
    log::error("cannot remove a sandbox, trying again later", {{"id", id}, {"error", done.error().message}});
    expiring_[id].reset();
  }
}

// The row is read again under the lock: the sandbox may have been renewed or deleted since it was found to be
// due.
Task<Result<void>> Lifecycle::expire_locked(std::string id) {
  auto guard = co_await locks_.lock(id);
  auto row = CO_TRY(co_await store_.find(Scope::everybody(), id));
  if (!row || !row->expires || *row->expires > clock_.now()) co_return Result<void>();
  co_return co_await remove_locked(Scope::everybody(), id, Reason::expired);
}

}  // namespace osb::server
