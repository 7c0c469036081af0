#pragma once

// Installing seccomp programs. The one of every sandbox is compiled during the build, from the table of
// seccomp_profile.h. All functions run between clone and exec, on a thread with no_new_privs or with root's
// rights.

#include <cstddef>

namespace osb::sys {

// A compiled program. 0 or -errno.
int install_seccomp(const void* program, size_t bytes);

// From now on sysinfo(2) waits for an answer from whoever reads the descriptor that this returns
// (close-on-exec). Or -errno.
int install_sysinfo_listener();

// From now on nobody registers for fast memory barriers, which membarrier(2) answers like a kernel that has
// none. A process with threads waits in there until every processor has been elsewhere, some ten
// milliseconds. 0 or -errno.
int refuse_barrier_registration();

}  // namespace osb::sys
