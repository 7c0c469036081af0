#pragma once

// How a process ended, asked of its pidfd (Linux 6.15): by whoever holds one, also when somebody else has
// waited for the process.

#include <optional>

namespace osb::sys {

// As wait(2) gives it. Nothing: the process runs, or the kernel cannot tell.
std::optional<int> exit_status_of(int pidfd);

}  // namespace osb::sys
