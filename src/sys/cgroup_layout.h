#pragma once

// Which hierarchies of control groups this host has, and which controller is in which: read from texts of
// the kernel, so that every host can be tried on every other.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::sys {

// Where one controller's files live.
struct Controller {
  enum class Version { none, v1, v2 } version = Version::none;
  std::string mount;  // mount point of the hierarchy
};

// The hierarchies of this host, read from a mountinfo text.
struct CgroupLayout {
  std::string v2;  // mount point, empty when there is none
  Controller cpu, memory, pids;
  Controller io;  // of version 1: reads only, writes go to the disk later and on nobody's account
  // Version 1 hierarchies that only show something; mount points, empty when there are none.
  std::string cpuset, cpuacct;

  static CgroupLayout parse(std::string_view mountinfo, std::string_view v2_controllers);
  static Result<CgroupLayout> detect();
};

// The version 2 group of a process, from the text of its /proc/<pid>/cgroup; empty when there is none.
std::string v2_group(std::string_view text);

// The options of the cgroup2 superblock, from a mountinfo text.
std::vector<std::string> cgroup2_options(std::string_view mountinfo);

}  // namespace osb::sys
