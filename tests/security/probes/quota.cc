#include <sys/quota.h>

#include "tools.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

namespace osb::probe {
namespace {

// Only asks; a file system without quotas answers ESRCH or ENOSYS to whoever may ask.
void run(Attempts& a, Args) {
  char answer[512];
  File root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  a.gate("quotactl_fd(2)", "quota of another user",
         ::syscall(SYS_quotactl_fd, root.fd(), QCMD(Q_GETQUOTA, USRQUOTA), 4242, answer));
  a.gate("quotactl(2)", "format of /dev/vda",
         ::syscall(SYS_quotactl, QCMD(Q_GETFMT, USRQUOTA), "/dev/vda", 0, answer));
}

}  // namespace

extern const Probe probe_quota = {"quota", "read or set disk quotas", nullptr, run};

}  // namespace osb::probe
