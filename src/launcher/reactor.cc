#include "launcher/reactor.h"

#include <algorithm>
#include <utility>

namespace osb::launcher {
namespace {

constexpr auto kRetryFirst = std::chrono::microseconds(20);
constexpr auto kRetryMost = std::chrono::milliseconds(1);
constexpr int kMostEvents = 64;

uint64_t pack(int fd, uint32_t serial) { return uint64_t{serial} << 32 | static_cast<uint32_t>(fd); }

}  // namespace

Result<void> Reactor::open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return fail_errno("epoll_create1");
  return {};
}

Result<void> Reactor::add(int fd, Watched watched) {
  watched.serial = next_serial_++;
  struct epoll_event event{};
  event.events = watched.interest;
  event.data.u64 = pack(fd, watched.serial);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) return fail_errno("epoll_ctl");
  watched_[fd] = std::move(watched);
  return {};
}

Result<void> Reactor::watch(int fd, std::function<void()> ready) {
  Watched watched;
  watched.ready = std::move(ready);
  return add(fd, std::move(watched));
}

Result<void> Reactor::watch_once(int fd, std::move_only_function<void()> ready) {
  Watched watched;
  watched.once = std::move(ready);
  return add(fd, std::move(watched));
}

void Reactor::set_interest(int fd, uint32_t events) {
  auto found = watched_.find(fd);
  if (found == watched_.end() || found->second.interest == events) return;
  struct epoll_event event{};
  event.events = events;
  event.data.u64 = pack(fd, found->second.serial);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) found->second.interest = events;
}

void Reactor::forget(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(fd);
}

void Reactor::retry(std::move_only_function<bool()> done) {
  retry_after_ = kRetryFirst;
  retries_.push_back(std::move(done));
}

void Reactor::run_retries() {
  if (retries_.empty()) return;
  auto pending = std::exchange(retries_, {});
  for (auto& done : pending) {
    if (!done()) retries_.push_back(std::move(done));
  }
  retry_after_ = std::min<Clock::duration>(retry_after_ * 2, kRetryMost);
}

int Reactor::wait(struct epoll_event* events, int count, Clock::duration most) const {
  if (!retries_.empty()) most = retry_after_;  // at most a millisecond late for anything else
  if (most == Clock::duration::max()) return ::epoll_wait(epoll_.get(), events, count, -1);
  // epoll_wait counts in milliseconds, and most of what is retried is done after some microseconds.
  auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(most).count();
  struct timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  return ::epoll_pwait2(epoll_.get(), events, count, &time, nullptr);
}

void Reactor::dispatch(uint64_t data) {
  auto found = watched_.find(static_cast<int>(data & 0xffff'ffff));
  if (found == watched_.end() || found->second.serial != data >> 32) return;
  if (found->second.once) {
    auto once = std::move(found->second.once);
    forget(found->first);
    return once();
  }
  auto ready = found->second.ready;  // which may forget itself
  ready();
}

int Reactor::turn(Clock::duration most) {
  struct epoll_event events[kMostEvents];
  int count = wait(events, kMostEvents, most);
  for (int i = 0; i < count; ++i) dispatch(events[i].data.u64);
  run_retries();
  return std::max(count, 0);
}

}  // namespace osb::launcher
