#pragma once

// How a process ended, in the words of the API, and what it used.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace osb::execd {

// Of a process and of those of its children that it waited for.
struct ProcessUse {
  std::chrono::microseconds cpu_time{0};
  uint64_t peak_memory_bytes = 0;  // of the largest of them
};

class ExitStatus {
 public:
  explicit ExitStatus(int wait_status, ProcessUse use = {}) : status_(wait_status), use_(use) {}

  bool success() const { return status_ == 0; }
  bool signalled() const;
  int signal() const;  // 0 unless signalled
  // What clients see: the exit code, or -1 when a signal ended it.
  int api_code() const;
  // "exit status 3", "signal: killed", "signal: aborted (core dumped)"
  std::string text() const;
  const ProcessUse& use() const { return use_; }

 private:
  int status_;
  ProcessUse use_;
};

// "time limit of 2 s": what is said of a process that was ended because its time was up.
std::string time_limit_text(std::chrono::milliseconds limit);

std::string_view signal_text(int signal);  // "killed", "terminated", ...; "" for unknown numbers
int signal_number(std::string_view name);  // of "SIGINT" and the like; 0 when unknown or not for clients

}  // namespace osb::execd
