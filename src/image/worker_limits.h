#pragma once

// What a worker keeps: a few capabilities over the files of its directory, bounded memory and file sizes, and
// the system calls that unpacking takes. 0 or -errno.

#include <cstdint>

namespace osb::image {

int set_worker_limits(uint64_t max_file_bytes);
int drop_worker_capabilities();
// no_new_privs must be set. Any other call ends the process.
int install_worker_seccomp();

}  // namespace osb::image
