#pragma once

// Limits that depend on more than a cgroup controller: whether this host can hold a sandbox to them.

#include <string>

#include "runtime/runtime.h"
#include "sys/cgroup.h"

namespace osb::runtime {

// Empty when it can; else the limit and the reason.
std::string limit_obstacle(const Limits& limits, const sys::CgroupLayout& cgroups, bool rootless);

}  // namespace osb::runtime
