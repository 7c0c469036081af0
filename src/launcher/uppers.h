#pragma once

// Where a sandbox's changes are: one upper for each of its overlays, in its directory or on a disk of its
// own.

#include <string>
#include <vector>

#include "base/fd.h"

namespace osb::launcher {

struct Uppers {
  Fd directory;
  bool is_mounted_alone = false;  // on a disk of its own: no way leads out of it
};
// `sandbox` is the sandbox's directory. Of a limited disk only while the sandbox has processes.
Result<Uppers> open_uppers(int sandbox);

struct Upper {
  std::string overlay;
  Fd directory;
};
Result<std::vector<Upper>> find_uppers(const Uppers& uppers);

}  // namespace osb::launcher
