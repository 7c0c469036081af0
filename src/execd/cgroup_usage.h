#pragma once

// What the control groups say about this sandbox: its limits and what it uses of them. Both hierarchies;
// `root` is where they are mounted, a parameter for tests.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace osb::execd {

struct CgroupUsage {
  std::optional<uint64_t> memory_limit_bytes;
  std::optional<uint64_t> memory_used_bytes;  // page cache that can be dropped at once is not counted
  std::optional<uint64_t> cpu_used_usec;      // since the group exists
  std::optional<double> cpu_limit;            // in CPUs
};

// `own` is the text of /proc/self/cgroup.
CgroupUsage read_cgroup_usage(const std::string& root, const std::string& own);

// The file with the number ("oom_kill") of processes that the kernel has killed for lack of memory; "" when
// there is none to be seen.
std::string memory_kill_counter(const std::string& root, const std::string& own);

// The value of a line "key value".
std::optional<uint64_t> keyed_number(std::string_view text, std::string_view key);

}  // namespace osb::execd
