#pragma once

// A sandbox on its way into the world.

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace osb::launcher {

// Its first process. Names one process of this boot, beyond the reuse of its number.
struct Started {
  int64_t pid = 0;
  uint64_t start_ticks = 0;
};

struct Starting {
  std::string id;
  Fd report;  // readable when the outcome is known
  Fd pidfd;
  Started started;
};

}  // namespace osb::launcher
