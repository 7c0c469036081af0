#pragma once

// How a process ended that is nobody's child here: Linux 6.15 and newer keep that with its pidfd once the
// process was reaped.

#include <optional>

namespace osb {

// As waitpid() would say it. Nothing when the kernel does not tell, or not yet; errno says which.
std::optional<int> exit_status_of(int pidfd);

}  // namespace osb
