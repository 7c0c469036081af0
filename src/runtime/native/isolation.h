#pragma once

// The isolation tier of the native runtime on this host, in words, and what the kernel lacks.

#include "runtime/runtime.h"
#include "sys/cgroup.h"

namespace osb::runtime {

Isolation native_isolation(const sys::CgroupLayout& cgroups);

}  // namespace osb::runtime
