#pragma once

#include <cstdint>

namespace osb::launcher {

// The first process of a sandbox. Names one process of this boot, beyond the reuse of its number.
struct Started {
  int64_t pid = 0;
  uint64_t start_ticks = 0;
};

}  // namespace osb::launcher
