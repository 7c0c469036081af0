#pragma once

// Processes by pidfd, and what identifies one beyond the reuse of its number: its start time and the boot it
// belongs to.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace osb::sys {

Result<Fd> open_pidfd(pid_t pid);
Result<pid_t> pid_of(int pidfd);
// Fine when the process is gone already.
Result<void> send_signal(int pidfd, int signal);
// Field 22 of /proc/<pid>/stat, in clock ticks since boot.
Result<uint64_t> process_start_ticks(pid_t pid);
Result<std::string> boot_id();

}  // namespace osb::sys
