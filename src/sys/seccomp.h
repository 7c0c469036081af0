#pragma once

// The seccomp program of every sandbox: checks of arguments written here by hand, then the table of
// seccomp_profile.h as libseccomp compiled it at build time (building it takes milliseconds, installing it a
// fraction of one).

#include <cstddef>

namespace osb::sys {

// Installs a compiled program on the calling thread; no_new_privs must be set. Runs between clone and exec. 0
// or -errno.
int install_seccomp(const void* program, size_t bytes);

}  // namespace osb::sys
