#pragma once

// How a process ended, in the words of the API.

#include <string>
#include <string_view>

namespace osb::execd {

class ExitStatus {
 public:
  explicit ExitStatus(int wait_status) : status_(wait_status) {}

  bool success() const { return status_ == 0; }
  bool signalled() const;
  int signal() const;  // 0 unless signalled
  // What clients see: the exit code, or -1 when a signal ended it.
  int api_code() const;
  // "exit status 3", "signal: killed", "signal: aborted (core dumped)"
  std::string text() const;

 private:
  int status_;
};

std::string_view signal_text(int signal);  // "killed", "terminated", ...; "" for unknown numbers
int signal_number(std::string_view name);  // of "SIGINT" and the like; 0 when unknown or not for clients

}  // namespace osb::execd
