#pragma once

// Tells when somebody has set the wall clock: timers of this process run on another clock and would not
// notice. Belongs to one loop.

#include <boost/asio/posix/stream_descriptor.hpp>

#include "io/task.h"

namespace osb::server {

class ClockChanges {
 public:
  static Result<ClockChanges> open(io::Executor executor);

  // Returns when the clock was set since it was opened, or since the last call has returned.
  io::Task<Result<void>> next();

 private:
  explicit ClockChanges(boost::asio::posix::stream_descriptor fd) : fd_(std::move(fd)) {}
  Result<void> arm();

  boost::asio::posix::stream_descriptor fd_;
};

}  // namespace osb::server
