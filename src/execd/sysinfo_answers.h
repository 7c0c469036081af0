#pragma once

// sysinfo(2) of the sandbox's programs, answered with the size of the sandbox.
//
// Most programs read /proc/meminfo, which the launcher covers; the C library's sysconf(_SC_PHYS_PAGES) and
// busybox ask the kernel, which tells the host's memory. Where memory is limited, the launcher has the kernel
// ask here instead (seccomp user notification).

#include <sys/sysinfo.h>

#include "base/fd.h"
#include "execd/cgroup_usage.h"

namespace osb::execd {

// Starts a thread that answers until the process ends. A thread of its own, because a call of ours to
// sysinfo, in whatever library, would otherwise wait for itself.
void answer_sysinfo(Fd requests);

// What such a call says: the limit, what is free of it, no swap; the rest as the kernel has it. `load` is
// the text of /proc/loadavg. A page more than the limit, because a Java machine takes a limit that is not
// below the memory of the machine for none.
struct sysinfo sandbox_sysinfo(const CgroupUsage& usage, std::string_view load, long uptime);

}  // namespace osb::execd
