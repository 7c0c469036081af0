#pragma once

// How many finished commands are kept. Fed from the newest to the oldest, so that what exceeds a limit is
// what is oldest; a pure value, so that the limits can be tested without running thousands of commands.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace osb::execd {

class Retention {
 public:
  static constexpr std::chrono::hours kAge{24};
  static constexpr size_t kMaxRecords = 4096;
  static constexpr size_t kMaxMemoryBytes = 16 << 20;
  static constexpr size_t kMaxLogFiles = 256;  // each holds a descriptor
  static constexpr uint64_t kMaxLogBytes = uint64_t{1} << 30;

  struct Finished {
    std::chrono::nanoseconds age{0};
    size_t memory_bytes = 0;
    uint64_t log_file_bytes = 0;  // 0: its log is in memory
  };
  // Whether this one stays, given those that were asked about before. The newest log may be of any size: it
  // is somebody's result, and nobody has had time to read it.
  bool keeps(const Finished& command) {
    ++records_;
    memory_ += command.memory_bytes;
    bool in_file = command.log_file_bytes > 0;
    files_ += in_file ? 1 : 0;
    bool fits = !in_file || files_ == 1 || log_bytes_ + command.log_file_bytes <= kMaxLogBytes;
    bool stays = records_ <= kMaxRecords && memory_ <= kMaxMemoryBytes && files_ <= kMaxLogFiles && fits &&
                 command.age < kAge;
    // What goes gives its room back, so that a large old log does not take smaller, older ones along.
    if (stays)
      log_bytes_ += command.log_file_bytes;
    else
      memory_ -= command.memory_bytes;
    return stays;
  }

 private:
  size_t records_ = 0, memory_ = 0, files_ = 0;
  uint64_t log_bytes_ = 0;
};

}  // namespace osb::execd
