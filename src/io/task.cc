#include "io/task.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <cstdlib>
#include <exception>
#include <list>
#include <vector>

#include "base/log.h"
#include "io/running_time.h"

namespace osb::io {
namespace {

constexpr auto kQuiet = asio::as_tuple(asio::deferred);

// Awaiting this throws in a cancelled task, as every co_await does: a wait that was cut short must not look
// like one that ended.
Task<> checkpoint() { co_return; }

bool is_cancellation(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

std::string describe(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

void rethrow_unless_cancellation(const std::exception_ptr& thrown) {
  if (thrown && !is_cancellation(thrown)) std::rethrow_exception(thrown);
}

}  // namespace

Task<> sleep_for(Duration duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  auto [error] = co_await timer.async_wait(kQuiet);
  if (error) co_await checkpoint();
}

Task<> yield() { co_await asio::post(co_await asio::this_coro::executor, asio::deferred); }

struct TaskGroup::State {
  explicit State(Executor e) : executor(std::move(e)), ended(executor) {
    ended.expires_at(asio::steady_timer::time_point::max());
  }

  Executor executor;
  std::list<std::shared_ptr<asio::cancellation_signal>> running;
  asio::steady_timer ended;  // cancelled whenever a task ends while the group closes
  bool closing = false;
};

TaskGroup::TaskGroup(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}

TaskGroup::~TaskGroup() {
  if (state_->running.empty()) return;
  // The tasks may use what is about to be destroyed with this group: going on would corrupt memory.
  log::error("task group destroyed while tasks run", {{"tasks", state_->running.size()}});
  std::abort();
}

void TaskGroup::spawn(Task<> task) {
  auto entry = state_->running.insert(state_->running.end(), std::make_shared<asio::cancellation_signal>());
  auto signal = *entry;
  asio::co_spawn(
      state_->executor, std::move(task),
      asio::bind_cancellation_slot(signal->slot(), [state = state_, entry](const std::exception_ptr& thrown) {
        if (thrown && !is_cancellation(thrown)) {
          log::error("exception left a task", {{"what", describe(thrown)}});
          std::abort();
        }
        state->running.erase(entry);
        if (state->closing) state->ended.cancel();
      }));
  if (state_->closing) signal->emit(asio::cancellation_type::terminal);
}

size_t TaskGroup::size() const { return state_->running.size(); }

Task<> TaskGroup::close() {
  auto state = state_;
  bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  state->closing = true;
  // A copy, since ending one task may end others of the list.
  std::vector<std::shared_ptr<asio::cancellation_signal>> signals(state->running.begin(),
                                                                  state->running.end());
  for (auto& signal : signals) signal->emit(asio::cancellation_type::terminal);
  while (!state->running.empty()) co_await state->ended.async_wait(kQuiet);
  state->closing = false;
  co_await asio::this_coro::throw_if_cancelled(throws);
}

Task<int> race(Task<> a, Task<> b) {
  auto executor = co_await asio::this_coro::executor;
  auto [order, thrown_a, thrown_b] =
      co_await asio::experimental::make_parallel_group(asio::co_spawn(executor, std::move(a), asio::deferred),
                                                       asio::co_spawn(executor, std::move(b), asio::deferred))
          .async_wait(asio::experimental::wait_for_one(), asio::deferred);
  rethrow_unless_cancellation(thrown_a);
  rethrow_unless_cancellation(thrown_b);
  co_return static_cast<int>(order[0]);
}

namespace detail {

Task<bool> run_until(Duration limit, Task<> task) {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  auto [order, thrown, timer_error] = co_await asio::experimental::make_parallel_group(
                                          asio::co_spawn(executor, std::move(task), asio::deferred),
                                          async_wait_running(timer, limit, asio::deferred))
                                          .async_wait(asio::experimental::wait_for_one(), asio::deferred);
  rethrow_unless_cancellation(thrown);
  co_return order[0] == 1 && !timer_error;
}

Error deadline_error(std::string_view what, Duration limit) {
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  std::string time = ms % 1000 ? std::to_string(ms) + " ms" : std::to_string(ms / 1000) + " s";
  return {Code::timeout, 0, std::string(what) + ": no answer within " + time};
}

}  // namespace detail

Event::Event(Executor executor) : timer_(executor) {
  timer_.expires_at(asio::steady_timer::time_point::max());
}

void Event::set() {
  set_ = true;
  timer_.cancel();
}

void Event::reset() { set_ = false; }

Task<> Event::wait() {
  if (set_) co_return;
  co_await timer_.async_wait(kQuiet);
  co_await checkpoint();
}

Error to_error(std::string_view what, const boost::system::error_code& code) {
  std::string message(what);
  message.append(": ");
  if (code == asio::error::eof) return {Code::unavailable, 0, message + "closed by the other side"};
  if (code.category() == boost::system::system_category() ||
      code.category() == boost::system::generic_category()) {
    return {code_from_errno(code.value()), code.value(), message + errno_text(code.value())};
  }
  return {Code::internal, 0, message + code.message()};
}

}  // namespace osb::io
