#pragma once

// What the launcher's one thread waits for: descriptors that become ready, and things that the kernel
// finishes in its own time without telling anybody.

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/fd.h"

namespace osb::launcher {

class Reactor {
 public:
  using Clock = std::chrono::steady_clock;

  Result<void> open();

  // `ready` is called each time that `fd` can be read, until forget(). Does not own it.
  Result<void> watch(int fd, std::function<void()> ready);
  // The same once: it is forgotten before the call.
  Result<void> watch_once(int fd, std::move_only_function<void()> ready);
  // EPOLLIN, EPOLLOUT or nothing, instead of EPOLLIN.
  void set_interest(int fd, uint32_t events);
  void forget(int fd);

  // `done` is called again and again, after 20 microseconds to a millisecond, until it returns true.
  void retry(std::move_only_function<bool()> done);

  size_t under_way() const { return watched_.size() + retries_.size(); }

  // Waits at most so long and calls whoever is ready. How many events there were.
  int turn(Clock::duration most);

 private:
  struct Watched {
    uint32_t serial = 0;  // a number may be another descriptor's by the time its event is looked at
    uint32_t interest = EPOLLIN;
    std::function<void()> ready;
    std::move_only_function<void()> once;
  };
  Result<void> add(int fd, Watched watched);
  int wait(struct epoll_event* events, int count, Clock::duration most) const;
  void dispatch(uint64_t data);
  void run_retries();

  Fd epoll_;
  uint32_t next_serial_ = 1;
  std::map<int, Watched> watched_;
  std::vector<std::move_only_function<bool()>> retries_;
  Clock::duration retry_after_{};
};

}  // namespace osb::launcher
