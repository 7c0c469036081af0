#pragma once

// What confined processes do for snapshots (confined.h): copying what a sandbox wrote, and comparing such
// copies. The caller, who has rights, only looks at attributes of directories that it is given by descriptor.

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/forked.h"

namespace osb::launcher {

struct CopyOrder {
  std::string place;      // see ConfinedOrder
  uint32_t first_id = 0;  // what uid and gid 0 of the files are
  struct Pair {
    int from = -1;                  // as the sandbox left it
    int to = -1;                    // an empty directory, for the same with canonical ids
    bool is_mounted_alone = false;  // `from` is in a mount of its own
  };
  std::vector<Pair> pairs;
};

struct CopiedLayer {
  std::string digest;
  uint64_t bytes = 0, entries = 0;
};

// A layer for each pair. Everything is ready when `halfway` is called, and nothing is read before it returns.
Result<std::vector<CopiedLayer>> copy_layers(const CopyOrder& order, const Halfway& halfway);

// Whether two layers with canonical ids have the same files, bytes included.
Result<bool> same_layers(int one, int other, const std::string& place);

}  // namespace osb::launcher
