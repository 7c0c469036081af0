#pragma once

// Reaps every child, as PID 1 must: those that execd started and those that other processes left to it.
//
// SIGCHLD is blocked in every thread and read from a descriptor, so nothing runs in signal handlers. Belongs
// to one loop. A child that is watched is reaped only there and its watcher told at once: as long as the
// watcher was not told, the pid (and the process group of that number) cannot have been given to another
// process, and signalling it is safe.

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <unordered_map>

#include "execd/exit_status.h"
#include "io/task.h"

namespace osb::execd {

class Reaper {
 public:
  using Ended = std::function<void(ExitStatus)>;

  // Blocks SIGCHLD in this thread; later threads inherit that.
  static Result<std::unique_ptr<Reaper>> create(io::Executor executor);

  // Calls `ended` once, from the loop. Register before the next suspension after the spawn.
  void watch(pid_t pid, Ended ended) { watched_[pid] = std::move(ended); }
  void forget(pid_t pid) { watched_.erase(pid); }
  io::Task<> run();

 private:
  explicit Reaper(io::asio::posix::stream_descriptor fd) : fd_(std::move(fd)) {}
  bool reap_some();  // false: there may be more

  io::asio::posix::stream_descriptor fd_;
  std::unordered_map<pid_t, Ended> watched_;
};

}  // namespace osb::execd
