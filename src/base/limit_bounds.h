#pragma once

// The largest limits that a sandbox can be asked to have. Whoever takes them from a client refuses more than
// this by name; whoever enforces them refuses more than this from anybody.

#include <cstdint>

namespace osb::limit_bounds {

inline constexpr int64_t kMostCpuMillis = 1'024'000;  // what a quota of the kernel can say, and then some
inline constexpr int64_t kMostPids = 4'000'000;       // a kernel has 4 Mi process ids
inline constexpr int64_t kMostDiskBytes = int64_t{1} << 44;  // of ext4 with blocks of 4 KiB
inline constexpr int64_t kMostOpenFiles = 1 << 30;           // of fs.nr_open
inline constexpr int64_t kMostGpus = 1024;                   // more than any host has
inline constexpr int64_t kMinShmBytes = 64 << 10;            // device nodes are in there, too
inline constexpr int64_t kMostShmBytes = int64_t{1} << 40;   // more memory than there is anywhere

}  // namespace osb::limit_bounds
