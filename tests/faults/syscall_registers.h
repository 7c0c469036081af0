#pragma once

// What a tracer does to a call of its tracee, where each architecture has its own way. CMakeLists.txt lists
// the same architectures: elsewhere osb-fault is not built, and its tests are skipped.

#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#if defined(__x86_64__)

// At the entry of a call: it is not made.
inline void skip_call(pid_t pid) {
  ::ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L);
}

// At the exit of a call: what it has answered.
inline void set_result(pid_t pid, long result) {
  ::ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), result);
}

#elif defined(__aarch64__)

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

inline void skip_call(pid_t pid) {
  int none = -1;
  struct iovec number{&none, sizeof none};
  ::ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &number);
}

inline void set_result(pid_t pid, long result) {
  struct user_regs_struct registers{};
  struct iovec all{&registers, sizeof registers};
  if (::ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) < 0) return;
  registers.regs[0] = static_cast<unsigned long long>(result);
  ::ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &all);
}

#else
#error "osb-fault is not built for this architecture: CMakeLists.txt"
#endif
