#pragma once

// What the native runtime can do on this host, found out once: control group controllers, loop devices, the
// service's own limits.

#include "runtime/capabilities.h"
#include "runtime/native/rootless.h"
#include "sys/cgroup.h"

namespace osb::runtime {

Capabilities native_capabilities(const sys::CgroupLayout& cgroups);
// Without root. Every client sends limits for cpu and memory, so these are accepted though nothing enforces
// them (the isolation tier says so); what a client asks for on purpose is refused.
Capabilities rootless_capabilities(const RootlessFacts& facts);

}  // namespace osb::runtime
