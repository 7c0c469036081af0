#pragma once

// The process's own side of a long-running command: signals as something to wait for, and output that a
// signal can interrupt.

#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "cli/event_stream.h"
#include "io/task.h"

namespace osb::cli {

// While it exists, SIGINT, SIGTERM and SIGHUP do not end the process but are counted here. One per process.
class Signals {
 public:
  static Result<Signals> create(io::Executor executor);

  // Returns when more than `count` signals have come.
  io::Task<> more_than(int count);
  int count();                                      // so far
  std::optional<int> first();                       // number of the first one
  std::optional<int> last();                        // and of the latest
  int descriptor() { return fd_.native_handle(); }  // readable when a signal is pending

 private:
  explicit Signals(io::asio::posix::stream_descriptor fd) : fd_(std::move(fd)) {}
  void drain();

  io::asio::posix::stream_descriptor fd_;
  int count_ = 0;
  std::optional<int> first_, last_;
};

// Writes everything, however slow the reader. Code::cancelled when a signal comes first, beyond the `heard`
// ones; Code::unavailable when nobody reads.
Result<void> write_unless_signalled(int fd, std::string_view bytes, Signals& signals, int heard = 0);

// What a command wrote, on the stream of the same name. Signals up to `heard` are known to the caller and
// interrupt nothing.
Result<void> write_event(const StreamEvent& event, Signals& signals, int heard = 0);

}  // namespace osb::cli
