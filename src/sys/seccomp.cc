#include "sys/seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

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
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sysinfo, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
  // So that a signal which does not kill cannot undo a question that is being answered (Linux 5.19).
  int fd = listen(program, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  return fd == -EINVAL ? listen(program, 0) : fd;
}

}  // namespace osb::sys
