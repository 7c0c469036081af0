#pragma once

// Limits on the processes of one group, written to the files of whichever version has the controller.
//
// A limit that no hierarchy can enforce is an error, never ignored.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "sys/cgroup_layout.h"

namespace osb::sys {

struct CgroupLimits {
  std::optional<int64_t> cpu_millis = {};
  std::optional<int64_t> memory_bytes = {};
  std::optional<int64_t> pids = {};
  // Bytes per second on each of `disks` ("major:minor" of whole disks).
  std::optional<int64_t> io_read_bytes = {};
  std::optional<int64_t> io_write_bytes = {};
  std::vector<std::string> disks = {};

  bool limits_io() const { return io_read_bytes || io_write_bytes; }
  // Nothing but the number of processes: nobody sees the groups of such a sandbox, nor what they have
  // counted.
  bool is_plain() const { return !cpu_millis && !memory_bytes && !limits_io(); }
};

// Code::unsupported, and which one, when this host has no controller for a limit.
Result<void> check_enforceable(const CgroupLimits& limits, const CgroupLayout& layout);

// The whole disk that holds a file's device, as "major:minor". Code::unsupported when that is no disk.
Result<std::string> disk_of(dev_t device);

// `group` is a directory in the controller's hierarchy.
Result<void> limit_memory(const std::string& group, Controller::Version version, int64_t bytes);
Result<void> limit_processes(const std::string& group, int64_t most);
Result<void> limit_io(const std::string& group, Controller::Version version, const CgroupLimits& limits);

// A group whose cpu is limited has a second one for that, `work` (kWork), below it; see CgroupHandles.
struct CpuGroups {
  Fd daemon, work;
};
Result<CpuGroups> limit_cpu(const std::string& group, Controller::Version version, int64_t millis);

}  // namespace osb::sys
