#pragma once

// Which ends were for lack of memory. To its parent a process that the kernel killed for that looks like any
// other that got SIGKILL; what differs is a counter of the sandbox's control group, which the kernel raises
// before it kills. So the counter is looked at when something starts and when something fails, and an end is
// put down to memory when the counter has grown in between, and only just now: what it counted earlier
// belongs to an earlier end.
//
// Belongs to one loop.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "execd/exit_status.h"

namespace osb::execd {

class MemoryKills {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // Where control groups are mounted, and the text of /proc/self/cgroup: parameters for tests.
  explicit MemoryKills(std::string root = "/sys/fs/cgroup", std::string own = {});

  // Looks at the counter. To be called before a process starts; the result is for explains().
  uint64_t look(Instant now = std::chrono::steady_clock::now());
  // Whether there is a counter at all.
  bool known() const { return counter_.valid(); }
  // Whether what ended now in this way, and began when look() returned `before`, ended for lack of memory. A
  // shell reports a program of its own that was killed with a code.
  bool explains(ExitStatus end, uint64_t before, Instant now = std::chrono::steady_clock::now());

 private:
  void open();

  std::string root_, own_;
  bool opened_ = false;
  Fd counter_;
  uint64_t count_ = 0;
  Instant grown_at_{};
};

// "out of memory (limit 64 MiB)"
std::string out_of_memory_text(std::optional<int64_t> limit_bytes);

}  // namespace osb::execd
