#pragma once

// The limit on the wait for an answer's head, on a connection that is used again and again.
//
// Most answers come within a millisecond, and a timer that is started and cancelled for each costs more than
// passing the answer on. So there is one timer for all of them: it is started when none runs, is left alone
// when the answer has come, and looks for itself when it ends whether anybody still waits. Belongs to one
// loop.

#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "io/socket.h"
#include "io/stopped_time.h"

namespace osb::http {

class AnswerTimer {
 public:
  // An expiry cancels what waits on the socket, which must live as long as this.
  explicit AnswerTimer(io::Socket& socket) : state_(std::make_shared<State>(socket)) {}
  ~AnswerTimer();
  AnswerTimer(const AnswerTimer&) = delete;

  // From now on. No time counts in which the other side is stopped; `stopped` may be empty.
  void arm(io::Duration limit, io::StoppedTime stopped);
  void disarm() { state_->deadline = kNever; }
  void forget_expiry() { state_->expired = false; }
  bool expired() const { return state_->expired; }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  static constexpr Moment kNever = Moment::max();

  // Shared, since an expiry may be queued when the owner goes.
  struct State {
    explicit State(io::Socket& s) : timer(s.get_executor()), socket(&s) {}
    io::asio::steady_timer timer;
    io::Socket* socket;  // null: nobody is left
    Moment deadline = kNever;
    io::Duration limit{};
    io::StoppedTime stopped;
    io::Duration stopped_before{};
    bool running = false;
    bool expired = false;

    io::Duration take_stopped();
  };
  static void wait(const std::shared_ptr<State>& state, Moment until);
  static void ring(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace osb::http
