#pragma once

// Which system calls a sandbox may make, as data with a reason per group. Calls that stand in no group answer
// ENOSYS, so that programs written for newer kernels fall back as they would on an older one.

#include <span>
#include <string_view>

namespace osb::sys {

struct SyscallGroup {
  std::string_view reason;
  std::span<const char* const> calls;
};

std::span<const SyscallGroup> allowed_syscalls();
std::span<const SyscallGroup> forbidden_syscalls();  // EPERM: they exist, and the answer is no

}  // namespace osb::sys
