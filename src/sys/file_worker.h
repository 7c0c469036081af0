#pragma once

// What processes have in common that work on files which strangers wrote, without a right on the host:
// namespaces of their own, a user namespace that owns nothing but files, six capabilities over those, bounds
// and a list of system calls. The order of these steps is the caller's. 0 or -errno.

#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <initializer_list>
#include <span>

#include "sys/bpf.h"

namespace osb::sys {

// A child in new mount, pid, network, ipc and host-name namespaces: its pid, 0 in the child. The caller has
// one thread.
pid_t clone_file_worker();

// User and group 0, of the user namespace that it is in.
int become_root_of_nothing();
// Those over files, CAP_SETFCAP for file capabilities among them; there is no way back to others.
int keep_file_capabilities();

struct Limit {
  __rlimit_resource_t what;
  rlim_t value;
};
// And no core file, of which a core handler of the host would still hear with a limit of zero. Never raises
// one.
int lower_limits(std::initializer_list<Limit> limits);

// The head of a program: calls of another architecture end the process, then the number is loaded.
void load_native_call(Bpf& bpf);
// Its end: these calls are allowed, any other ends the process. Installs it; no_new_privs must be set.
int install_allowing(Bpf& bpf, std::span<const int> calls);

}  // namespace osb::sys
