#include "sys/seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace osb::sys {

int install_seccomp(const void* program, size_t bytes) {
  struct sock_fprog filter{};
  filter.len = static_cast<unsigned short>(bytes / sizeof(struct sock_filter));
  filter.filter = static_cast<struct sock_filter*>(const_cast<void*>(program));
  // Spec-store-bypass and branch mitigations stay as the kernel sets them; SPEC_ALLOW would trade them for
  // speed.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0) return -errno;
  return 0;
}

}  // namespace osb::sys
