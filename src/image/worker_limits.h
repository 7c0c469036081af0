#pragma once

// What a worker may still do: bounded memory and file sizes, and the system calls that unpacking takes. 0 or
// -errno.

#include <cstdint>

namespace osb::image {

int set_worker_limits(uint64_t max_file_bytes);
// no_new_privs must be set. Any other call ends the process.
int install_worker_seccomp();

}  // namespace osb::image
