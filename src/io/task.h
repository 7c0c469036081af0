#pragma once

// The Asio face: coroutines, owned groups of them, deadlines, sleeping.
//
// A Task does nothing until it is awaited or spawned. No coroutine is ever detached: spawn() puts it into a
// TaskGroup, and closing the group cancels what runs and waits for it. Coroutines take what must live across
// a suspension by value, and are never capturing lambdas.
//
// Cancellation unwinds: an operation that is under way ends with Code::cancelled, and every co_await after
// that throws Asio's operation_aborted, which the owner (TaskGroup, with_deadline, race) swallows.
// Destructors are the only clean-up that a cancelled task is sure to run. A task that must await during its
// clean-up, for example because it holds a TaskGroup of its own, says `co_await
// asio::this_coro::throw_if_cancelled(false)` first and then looks at the results.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"

namespace osb::io {

namespace asio = boost::asio;
using Executor = asio::any_io_executor;
using Duration = std::chrono::steady_clock::duration;

template <class T = void>
using Task = asio::awaitable<T>;

Task<> sleep_for(Duration duration);
// Lets everything else that is ready run first. For loops whose operations may all succeed at once.
Task<> yield();

// A set of running coroutines that belongs to one executor (one thread).
class TaskGroup {
 public:
  explicit TaskGroup(Executor executor);
  ~TaskGroup();  // aborts when tasks still run: close() comes first
  TaskGroup(const TaskGroup&) = delete;

  // An exception that leaves a task is a bug of ours (unless it is that of a cancellation): it is logged and
  // ends the process. A task that is spawned while the group closes is cancelled at its first suspension.
  void spawn(Task<> task);
  size_t size() const;
  // Cancels every task and waits until all have ended, even when the caller is cancelled meanwhile. The group
  // is usable again afterwards.
  Task<> close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Runs both at once. The first to end cancels the other; returns when both have ended. Gives the first one's
// index.
Task<int> race(Task<> a, Task<> b);

// The task's result, or Code::timeout ("<what>: no answer within 5 s") after cancelling it.
template <class T>
Task<Result<T>> with_deadline(Duration limit, std::string what, Task<Result<T>> task);

// An event that coroutines wait for; set() wakes all of them, and it stays set until reset().
class Event {
 public:
  explicit Event(Executor executor);
  void set();
  void reset();
  bool is_set() const { return set_; }
  Task<> wait();

 private:
  asio::steady_timer timer_;
  bool set_ = false;
};

// Turns an Asio error code into an Error.
Error to_error(std::string_view what, const boost::system::error_code& code);

}  // namespace osb::io

#include "io/task_inline.h"
