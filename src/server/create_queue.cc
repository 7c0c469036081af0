#include "server/create_queue.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <thread>

#include "api/failure_status.h"
#include "sandbox/failures.h"

namespace osb::server {

namespace asio = boost::asio;

struct CreateQueue::Turn::State {
  State(CreateQueue& q, const io::Executor& executor) : queue(&q), timer(executor) {}

  void end() {
    if (CreateQueue* q = std::exchange(queue, nullptr)) q->leave();
  }

  CreateQueue* queue;
  asio::steady_timer timer;
};

// A place in line for as long as the frame of enter() lives, however it ends.
struct CreateQueue::Waiter {
  Waiter(CreateQueue& q, const io::Executor& executor)
      : queue(q), timer(executor), at(q.line_.insert(q.line_.end(), this)) {}
  ~Waiter() {
    if (!called) queue.line_.erase(at);
    if (called && !taken) queue.leave();  // cancelled with a place in hand
  }
  Waiter(const Waiter&) = delete;

  CreateQueue& queue;
  asio::steady_timer timer;
  std::list<Waiter*>::iterator at;
  bool called = false;
  bool taken = false;
};

// Part of a create waits (for the launcher, for the new process), so somewhat more than cores.
size_t CreateQueue::default_at_once() {
  return std::max<size_t>(4, size_t{4} * std::thread::hardware_concurrency());
}

CreateQueue::CreateQueue(io::Executor executor, Limits limits)
    : executor_(std::move(executor)), limits_(limits) {}

CreateQueue::Turn::~Turn() {
  if (state_ == nullptr) return;
  state_->timer.cancel();
  state_->end();
}

CreateQueue::Turn CreateQueue::begin_turn() {
  auto state = std::make_shared<Turn::State>(*this, executor_);
  state->timer.expires_after(limits_.longest_turn);
  state->timer.async_wait([state](const boost::system::error_code& error) {
    if (!error) state->end();
  });
  return Turn(std::move(state));
}

// The place goes to the next in line, or is free.
void CreateQueue::leave() {
  if (line_.empty()) {
    --running_;
    return;
  }
  Waiter* next = line_.front();
  line_.pop_front();
  next->called = true;
  next->timer.cancel();
}

io::Task<api::ApiResult<CreateQueue::Turn>> CreateQueue::enter() {
  if (running_ < limits_.at_once) {
    ++running_;
    co_return begin_turn();
  }
  Waiter waiter(*this, executor_);
  waiter.timer.expires_after(limits_.patience);
  std::ignore = co_await waiter.timer.async_wait(asio::as_tuple(asio::deferred));
  if (!waiter.called)
    co_return api::refuse(api::to_api_error(
        sandbox::too_many_creates("Too many sandboxes are being made; this one waited in vain.")));
  waiter.taken = true;
  co_return begin_turn();
}

}  // namespace osb::server
