#pragma once

// For unit tests: runs one coroutine to its end on a loop of its own. What an exception carries out,
// GoogleTest reports.

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>

#include "io/task.h"

namespace osb::io::testing {

template <class T>
Task<> keep(std::optional<T>* out, Task<T> task) {
  out->emplace(co_await std::move(task));
}

inline void run(asio::io_context& loop, Task<> task) {
  std::exception_ptr thrown;
  bool ended = false;
  asio::co_spawn(loop, std::move(task), [&](const std::exception_ptr& e) {
    thrown = e;
    ended = true;
  });
  loop.restart();
  loop.run_for(std::chrono::seconds(60));  // a test that hangs fails instead
  if (thrown) std::rethrow_exception(thrown);
  if (!ended) {
    ADD_FAILURE() << "the task did not end";
    std::abort();  // its frame refers to locals of the test
  }
}

inline void run(Task<> task) {
  asio::io_context loop(1);
  run(loop, std::move(task));
}

template <class T>
T run(Task<T> task) {
  std::optional<T> out;
  run(keep(&out, std::move(task)));
  return std::move(*out);
}

}  // namespace osb::io::testing
