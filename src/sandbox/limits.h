#pragma once

// What a sandbox may use. One type from the request to the runtime; always initialised by name.

#include <cstdint>
#include <optional>

namespace osb::sandbox {

inline constexpr int64_t kAllGpus = -1;

struct Limits {
  std::optional<int64_t> cpu_millis = {};  // 1000 = one core
  std::optional<int64_t> memory_bytes = {};
  std::optional<int64_t> pids = {};        // absent: the runtime's default
  std::optional<int64_t> disk_bytes = {};  // everything that is written, on all layers together
  std::optional<int64_t> io_read_bytes = {}, io_write_bytes = {};  // per second
  std::optional<int64_t> open_files = {};                          // per process
  std::optional<int64_t> gpus = {};                                // kAllGpus: whatever there is
};

}  // namespace osb::sandbox
