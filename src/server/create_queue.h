#pragma once

// How many sandboxes are made at the same time. Making one is work for a core; more of them at once than
// cores can use end no sooner, and stand in the way of deletes, which are what makes room. So a few run, the
// others wait in line, and whoever has waited for too long is told to come back instead of being served when
// nobody listens any more. The length of the line is bounded by server.limit_concurrency. Belongs to one
// loop.

#include <boost/asio/steady_timer.hpp>
#include <list>
#include <memory>

#include "api/error.h"
#include "io/task.h"

namespace osb::server {

class CreateQueue {
 public:
  struct Limits {
    size_t at_once = default_at_once();
    io::Duration patience = std::chrono::seconds(10);
    // A create that takes so long waits for something else than a core, and others may go on.
    io::Duration longest_turn = std::chrono::seconds(1);
  };
  static size_t default_at_once();

  explicit CreateQueue(io::Executor executor) : CreateQueue(std::move(executor), Limits()) {}
  CreateQueue(io::Executor executor, Limits limits);
  CreateQueue(const CreateQueue&) = delete;

  // Holds a place among those that run; must not outlive the queue.
  class Turn {
   public:
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    friend CreateQueue;
    struct State;
    explicit Turn(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };
  io::Task<api::ApiResult<Turn>> enter();

  size_t running() const { return running_; }
  size_t waiting() const { return line_.size(); }

 private:
  struct Waiter;

  Turn begin_turn();
  void leave();

  io::Executor executor_;
  Limits limits_;
  size_t running_ = 0;
  std::list<Waiter*> line_;
};

}  // namespace osb::server
