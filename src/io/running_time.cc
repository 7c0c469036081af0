#include "io/running_time.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>

namespace osb::io {

namespace detail {

Duration left_after(Duration left, Duration slice, Moment from, Moment now) {
  // A stop somewhere within the slice: how much of it ran is not known, and a limit must never end early.
  if (now - from > slice + kLateBySlice) return left;
  return left - (now - from);
}

}  // namespace detail

namespace {

// Awaiting it throws in a cancelled task.
Task<> checkpoint() { co_return; }

Task<> wait_for(Duration limit, StoppedTime stopped) {
  Duration before = stopped();
  while (limit > Duration::zero()) {
    co_await sleep_for(limit);
    Duration now = stopped();
    limit = now > before ? std::max(now - before, kSlice) : Duration::zero();
    before = now;
  }
}

}  // namespace

void RunningTimer::start(Duration limit, std::function<void()> expired) {
  cancel();
  // A fresh one: the last wait may not have heard yet that it was cancelled, and looks at its own.
  state_ = std::make_shared<State>(state_->timer.get_executor());
  state_->expired = std::move(expired);
  auto done = [state = state_](const boost::system::error_code& error) {
    if (!error && state->expired) std::exchange(state->expired, nullptr)();
  };
  async_wait_running(state_->timer, limit,
                     asio::bind_cancellation_slot(state_->stop.slot(), std::move(done)));
}

void RunningTimer::cancel() {
  state_->expired = nullptr;
  state_->stop.emit(asio::cancellation_type::terminal);
}

Task<> sleep_running(Duration limit) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  auto [error] = co_await async_wait_running(timer, limit, asio::as_tuple(asio::deferred));
  if (error) co_await checkpoint();
}

Task<Result<void>> with_deadline_for(Duration limit, std::string what, StoppedTime stopped,
                                     Task<Result<void>> task) {
  std::optional<Result<void>> result;
  int first = co_await race(detail::store_result<void>(&result, std::move(task)),
                            wait_for(limit, std::move(stopped)));
  bool expired = first == 1;
  if (expired && (!result || !*result)) co_return std::unexpected(detail::deadline_error(what, limit));
  if (!result) co_return fail(Code::cancelled, what + ": cancelled");
  co_return std::move(*result);
}

}  // namespace osb::io
