#include "sys/seccomp.h"

#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "sys/bpf.h"

namespace osb::sys {
namespace {

int listen(const sock_fprog& program, unsigned flags) {
  long fd =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

}  // namespace

int install_seccomp(const void* program, size_t bytes) {
  struct sock_fprog filter{};
  filter.len = static_cast<unsigned short>(bytes / sizeof(struct sock_filter));
  filter.filter = static_cast<struct sock_filter*>(const_cast<void*>(program));
  // Spec-store-bypass and branch mitigations stay as the kernel sets them; SPEC_ALLOW would trade them for
  // speed.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0) return -errno;
  return 0;
}

int install_sysinfo_listener() {
  // Of another table of calls, which the sandbox's program refuses, the answer here does not matter.
  auto steps = answer_one_call(SYS_sysinfo, SECCOMP_RET_USER_NOTIF);
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  // So that a signal which does not kill cannot undo a question that is being answered (Linux 5.19).
  int fd = listen(program, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  return fd == -EINVAL ? listen(program, 0) : fd;
}

int refuse_barrier_registration() {
  constexpr auto kSteps = answer_one_command(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
                                             SECCOMP_RET_ERRNO | EINVAL);
  return install_seccomp(kSteps.data(), sizeof kSteps);
}

}  // namespace osb::sys
