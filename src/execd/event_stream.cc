#include "execd/event_stream.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "execd/events.h"

namespace osb::execd {

using std::chrono::steady_clock;

EventStream::EventStream(io::Executor executor)
    : timer_(executor), next_ping_(steady_clock::now() + kPingInterval), room_(executor) {}

void EventStream::push(std::string_view events) {
  if (!attached_ || events.empty()) return;
  bool before = strained();
  buffer_.append_or_hold(events);
  if (strained() && !before) {
    log::warn("no disk space for output: a command waits for its client");
    room_.reset();
  }
  wake();
}

io::Task<> EventStream::wait_for_room() {
  while (strained()) co_await room_.wait();
}

void EventStream::end() {
  ended_ = true;
  wake();
}

void EventStream::detach() {
  attached_ = false;
  buffer_.clear();
  room_.set();
}

void EventStream::wake() {
  if (waiting_) timer_.cancel();
  waiting_ = false;
}

bool EventStream::ping_due() const { return !ended_ && steady_clock::now() >= next_ping_; }

io::Task<Result<std::string>> EventStream::next() {
  while (buffer_.empty() && !ended_ && !ping_due()) {
    timer_.expires_at(next_ping_);
    waiting_ = true;
    co_await timer_.async_wait(io::asio::as_tuple(io::asio::deferred));
  }
  std::string bytes;
  CO_TRY(buffer_.take(bytes));
  if (!strained()) room_.set();
  if (buffer_.empty() && ping_due()) {
    events::append_ping(bytes, epoch_ms());
    next_ping_ = steady_clock::now() + kPingInterval;
  }
  co_return bytes;
}

namespace {

struct Detacher {
  EventStream& stream;
  ~Detacher() { stream.detach(); }
};

}  // namespace

io::Task<Delivery> send_events(EventStream& stream, http::ResponseWriter& response) {
  Detacher detacher{stream};
  http::Headers headers{{"Content-Type", "text/event-stream"},
                        {"Cache-Control", "no-cache"},
                        {"Connection", "keep-alive"},
                        {"X-Accel-Buffering", "no"}};
  if (!co_await response.start(200, std::move(headers), std::nullopt)) co_return Delivery::client_gone;
  while (true) {
    auto bytes = co_await stream.next();
    if (!bytes) {
      response.abort();
      co_return Delivery::client_gone;
    }
    if (bytes->empty()) break;
    if (!co_await response.write(*bytes)) co_return Delivery::client_gone;
  }
  co_await response.finish();
  co_return Delivery::complete;
}

}  // namespace osb::execd
