#include "http/answer_timer.h"

#include <algorithm>

#include "io/running_time.h"

namespace osb::http {

AnswerTimer::~AnswerTimer() {
  state_->socket = nullptr;
  state_->timer.cancel();
}

void AnswerTimer::arm(io::Duration limit, io::StoppedTime stopped) {
  State& state = *state_;
  state.limit = limit;
  state.stopped = std::move(stopped);
  state.stopped_before = state.stopped ? state.stopped() : io::Duration();
  state.deadline = std::chrono::steady_clock::now() + limit;
  if (!state.running || state.deadline < state.timer.expiry()) wait(state_, state.deadline);
}

// What the other side could not use of the time that is over.
io::Duration AnswerTimer::State::take_stopped() {
  if (!stopped) return {};
  io::Duration now = stopped();
  return now - std::exchange(stopped_before, now);
}

void AnswerTimer::wait(const std::shared_ptr<State>& state, Moment until) {
  state->running = true;
  state->timer.expires_at(until);  // a wait that is under way ends with an error
  state->timer.async_wait([state](const boost::system::error_code& error) {
    if (!error && state->socket) ring(state);
  });
}

void AnswerTimer::ring(const std::shared_ptr<State>& state) {
  state->running = false;
  if (state->deadline == kNever) return;
  Moment now = std::chrono::steady_clock::now();
  if (state->deadline > now) return wait(state, state->deadline);
  if (auto more = state->take_stopped(); more > io::Duration::zero()) {
    // While the other side is stopped this looks again and again, but not all the time.
    state->deadline = now + std::max(more, std::min(state->limit, io::kSlice));
    return wait(state, state->deadline);
  }
  state->deadline = kNever;
  state->expired = true;
  boost::system::error_code ignored;
  state->socket->cancel(ignored);
}

}  // namespace osb::http
