#pragma once

// What connects a running command to the client that reads its events. The command pushes and never waits;
// the client takes at its own pace. A client that goes away detaches the stream, and what is pushed from then
// on is dropped.
//
// Belongs to one loop. At most one reader.

#include <boost/asio/steady_timer.hpp>
#include <string>
#include <string_view>

#include "execd/spill_buffer.h"
#include "http/server.h"
#include "io/task.h"

namespace osb::execd {

class EventStream {
 public:
  explicit EventStream(io::Executor executor);

  // Whole events only.
  void push(std::string_view events);
  // Events wait for which there is no room on disk: whoever makes more should wait until the client has taken
  // them. The only case in which a command is held up by its reader; the other choice would be to lose
  // output.
  bool strained() const { return buffer_.strained(); }
  io::Task<> wait_for_room();
  // Nothing follows; the reader ends after what was pushed.
  void end();
  bool attached() const { return attached_; }
  void detach();

  // The next bytes, or nothing at the end. Pings come from here, every kPingInterval, between whole events.
  // An error means that events were lost (the file cannot be read): the client must not take the stream for
  // complete.
  io::Task<Result<std::string>> next();

  static constexpr std::chrono::seconds kPingInterval{3};

 private:
  static constexpr size_t kMemoryLimit = 1 << 20;
  void wake();
  bool ping_due() const;

  io::asio::steady_timer timer_;
  SpillBuffer buffer_{kMemoryLimit};
  std::chrono::steady_clock::time_point next_ping_;
  io::Event room_;
  bool waiting_ = false;
  bool attached_ = true;
  bool ended_ = false;
};

enum class Delivery { complete, client_gone };

// Answers with the stream until it ends, then ends the body at once. Detaches it in every case.
io::Task<Delivery> send_events(EventStream& stream, http::ResponseWriter& response);

}  // namespace osb::execd
