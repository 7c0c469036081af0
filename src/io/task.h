#pragma once

// The Asio face: coroutines, owned groups of them, deadlines, sleeping.
//
// A Task does nothing until it is awaited or spawned. No coroutine is ever detached: spawn() puts it into a TaskGroup, and
// closing the group cancels what runs and waits for it. Coroutines take what must live across a suspension by value, and
// are never capturing lambdas.

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

// A set of running coroutines that belongs to one executor (one thread).
class TaskGroup {
 public:
  explicit TaskGroup(Executor executor);
  ~TaskGroup();  // aborts when tasks still run: close() comes first
  TaskGroup(const TaskGroup&) = delete;

  // An exception that leaves a task is a bug of ours; it is logged and ends the process.
  void spawn(Task<> task);
  size_t size() const;
  // Cancels every task and waits until all have ended.
  Task<> close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

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
