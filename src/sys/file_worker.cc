#include "sys/file_worker.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/fd.h"
#include "sys/caps.h"
#include "sys/seccomp.h"

namespace osb::sys {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture's audit number"
#endif

int lower(Limit limit) {
  struct rlimit now{};
  if (::getrlimit(limit.what, &now) < 0) return -errno;
  rlim_t value = std::min(now.rlim_max, limit.value);
  const struct rlimit both{value, value};
  return check_call(::setrlimit(limit.what, &both));
}

}  // namespace

pid_t clone_file_worker() {
  struct clone_args args{};
  args.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  args.exit_signal = SIGCHLD;
  return static_cast<pid_t>(check_call(::syscall(SYS_clone3, &args, sizeof args)));
}

int become_root_of_nothing() {
  if (::setgroups(0, nullptr) < 0) return -errno;
  if (::setresgid(0, 0, 0) < 0) return -errno;
  return check_call(::setresuid(0, 0, 0));
}

int keep_file_capabilities() {
  return keep_capabilities(
      {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP});
}

int lower_limits(std::initializer_list<Limit> limits) {
  for (Limit limit : limits) {
    if (int status = lower(limit); status < 0) return status;
  }
  return lower({RLIMIT_CORE, 1});
}

void load_native_call(Bpf& bpf) {
  auto ours = bpf.label();
  bpf.load(offsetof(seccomp_data, arch));
  bpf.if_equal(kArchitecture, ours);
  bpf.answer(SECCOMP_RET_KILL_PROCESS);
  bpf.place(ours);
  bpf.load(offsetof(seccomp_data, nr));
}

int install_allowing(Bpf& bpf, std::span<const int> calls) {
  for (int call : calls) {
    auto next = bpf.label();
    bpf.if_not_equal(static_cast<uint32_t>(call), next);
    bpf.answer(SECCOMP_RET_ALLOW);
    bpf.place(next);
  }
  bpf.answer(SECCOMP_RET_KILL_PROCESS);
  auto program = bpf.assemble();
  if (!program) return -EINVAL;
  return install_seccomp(program->data(), program->size() * sizeof(sock_filter));
}

}  // namespace osb::sys
