#pragma once

// What makes a program of a file act as somebody else than who starts it: the bits that set the user or the
// group, and capabilities kept with the file. Where a sandbox's files are root's on the host, it must be able
// neither to give these to a file nor to change a file that has them.

#include <linux/capability.h>
#include <linux/filter.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "base/error.h"

namespace osb::sys {

// A seccomp program after which no call makes a file with one of these bits, or gives one to a file. openat2
// answers ENOSYS: its mode is behind a pointer. To stand beside the program of every sandbox, which closes
// other tables of calls, and io_uring.
Result<std::vector<sock_filter>> refuse_privileged_modes();

// Without these nobody writes a file's capabilities, or keeps the bits of one that is changed.
inline constexpr std::initializer_list<int> kFilePrivilegeCapabilities = {CAP_FSETID, CAP_SETFCAP};

inline constexpr size_t kMostLookedAt = 1'000'000;
inline constexpr size_t kDeepestLookedAt = 256;

// Looks through a directory and everything below for a file that sets root as its user or its group, or that
// has capabilities. A write takes these from a file, but one through shared memory does not (Linux has no
// check there). 0 when there is none, -EPERM when there is; -E2BIG for more than kMostLookedAt names,
// -ELOOP for directories deeper than kDeepestLookedAt, or another -errno. Allocates nothing.
int find_file_privileges(int directory);

}  // namespace osb::sys
