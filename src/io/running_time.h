#pragma once

// Time limits that do not run while nobody could do anything about them.
//
// A frozen process sees its clock jump when it goes on: a limit of a minute would be over at once, although
// it had run for a second. Limits here are therefore counted in short slices, and a slice that took much
// longer than asked for does not count. Limits on the work of somebody else, who may be stopped while we are
// not, take a StoppedTime. with_deadline() counts in this way as well.

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <functional>
#include <memory>

#include "io/stopped_time.h"
#include "io/task.h"

namespace osb::io {

inline constexpr Duration kSlice = std::chrono::seconds(1);
inline constexpr Duration kLateBySlice = std::chrono::seconds(1);  // a busy machine is late by less

namespace detail {

using Moment = std::chrono::steady_clock::time_point;

// What is left of a limit after a slice that began at `from` and was to take `slice`.
Duration left_after(Duration left, Duration slice, Moment from, Moment now);

struct RunningWait {
  asio::steady_timer& timer;
  Duration left;
  Duration slice{};
  Moment from{};
  bool armed = false;

  template <class Self>
  void operator()(Self& self, const boost::system::error_code& error = {}) {
    if (error) return self.complete(error);
    // Cancelled after the slice was over and before we heard of it: there was no wait that could be
    // cancelled.
    if (self.cancelled() != asio::cancellation_type::none)
      return self.complete(asio::error::operation_aborted);
    Moment now = std::chrono::steady_clock::now();
    if (armed) left = left_after(left, slice, from, now);
    if (armed && left <= Duration::zero()) return self.complete({});
    armed = true;
    from = now;
    slice = std::min(left, kSlice);
    timer.expires_at(now + slice);
    timer.async_wait(std::move(self));
  }
};

}  // namespace detail

// Completes when `limit` of running time is over; with an error when the operation is cancelled. The timer is
// the caller's until then.
template <class Token>
auto async_wait_running(asio::steady_timer& timer, Duration limit, Token&& token) {
  return asio::async_compose<Token, void(boost::system::error_code)>(detail::RunningWait{timer, limit}, token,
                                                                     timer);
}

// The same for who does not wait for the completion: after cancel(), or without the timer, nothing is called.
class RunningTimer {
 public:
  explicit RunningTimer(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}
  ~RunningTimer() { cancel(); }
  RunningTimer(const RunningTimer&) = delete;

  void start(Duration limit, std::function<void()> expired);
  void cancel();

 private:
  struct State {
    explicit State(const Executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    std::function<void()> expired;
    asio::cancellation_signal stop;
  };
  std::shared_ptr<State> state_;
};

Task<> sleep_running(Duration limit);

// As with_deadline(); the limit is on somebody's work who may be stopped.
Task<Result<void>> with_deadline_for(Duration limit, std::string what, StoppedTime stopped,
                                     Task<Result<void>> task);

}  // namespace osb::io
