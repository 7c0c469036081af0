#pragma once

// The last part of what the entry process wrote, one line per line with the time it came, for whoever asks
// why a sandbox ended. Bounded; what is older is forgotten. Both streams share one pipe, so their order is
// kept.

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "execd/pipes.h"
#include "io/task.h"

namespace osb::execd {

class EntryLog {
 public:
  static constexpr size_t kMostBytes = 64 * 1024;
  static constexpr size_t kMostLine = 8 * 1024;

  void append(std::string_view bytes, WallTime at);
  // Every kept line; the unfinished last one, too.
  std::string text() const;
  bool forgot() const { return forgot_; }

 private:
  void finish_line();

  std::deque<std::string> lines_;
  size_t bytes_ = 0;
  std::string open_;  // the line under way, with its time in front
  bool forgot_ = false;
};

// The pipe that feeds a log.
class EntryOutput {
 public:
  explicit EntryOutput(io::Executor executor) : pipe_(executor) {}
  // The end for the process.
  Result<Fd> open();
  // Until every writer has closed it. Spawned once; the object is shared with it.
  static io::Task<> read(std::shared_ptr<EntryOutput> self);
  // What is in the pipe now and no more.
  void drain();
  // A line of execd's own.
  void note(std::string_view line);
  const EntryLog& log() const { return log_; }

 private:
  void take(std::string_view bytes);
  PipeEnd pipe_;
  EntryLog log_;
};

}  // namespace osb::execd
