#pragma once

// For unit tests: a loop that runs servers in the background while the test waits for one task at a time.

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "io/task.h"

namespace osb::server {

class TestLoop {
 public:
  ~TestLoop() {
    if (group_) await(group_->close());
  }

  io::Executor executor() { return loop_.get_executor(); }
  io::TaskGroup& background() {
    if (!group_) group_.emplace(loop_.get_executor());
    return *group_;
  }

  template <class T>
  struct Pending {
    std::optional<T> value;
    bool done = false;
  };

  template <class T>
  std::shared_ptr<Pending<T>> begin(io::Task<T> task) {
    auto pending = std::make_shared<Pending<T>>();
    io::asio::co_spawn(loop_, keep(pending, std::move(task), &loop_), [](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
    return pending;
  }

  template <class T>
  T finish(const std::shared_ptr<Pending<T>>& pending) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!pending->done) {
      loop_.restart();
      loop_.run_until(deadline);
      if (!pending->done && std::chrono::steady_clock::now() >= deadline) {
        ADD_FAILURE() << "the task did not end";
        std::abort();  // its frame refers to locals of the test
      }
    }
    return std::move(*pending->value);
  }

  template <class T>
  T await(io::Task<T> task) {
    return finish(begin(std::move(task)));
  }
  void await(io::Task<> task) { await(as_value(std::move(task))); }

  // Everything that is ready now, and what becomes ready by that.
  void settle() {
    loop_.restart();
    while (loop_.poll() > 0) {
    }
  }

 private:
  static io::Task<int> as_value(io::Task<> task) {
    co_await std::move(task);
    co_return 0;
  }
  template <class T>
  static io::Task<> keep(std::shared_ptr<Pending<T>> pending, io::Task<T> task, io::asio::io_context* loop) {
    pending->value.emplace(co_await std::move(task));
    pending->done = true;
    loop->stop();
  }

  io::asio::io_context loop_{1};
  std::optional<io::TaskGroup> group_;
};

}  // namespace osb::server
