#pragma once

// Waiting for a descriptor in the event loop makes it non-blocking, and with it that of everybody who shares
// it: the shell that we were started from, the next program of a script. This puts it back.

#include <fcntl.h>

namespace osb::cli {

class KeptFlags {
 public:
  explicit KeptFlags(int fd) : fd_(fd), flags_(::fcntl(fd, F_GETFL)) {}
  ~KeptFlags() {
    if (flags_ >= 0) ::fcntl(fd_, F_SETFL, flags_);
  }
  KeptFlags(const KeptFlags&) = delete;
  KeptFlags& operator=(const KeptFlags&) = delete;

 private:
  int fd_, flags_;
};

}  // namespace osb::cli
