#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "tools.h"

namespace osb::probe {
namespace {

// The tool that stretches kernel races to any length.
void run(Attempts& a, Args) {
  for (const int flags : {0, UFFD_USER_MODE_ONLY}) {
    File faults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags));
    a.call("userfaultfd(2)", flags ? "user mode only" : "", faults.fd());
  }
  File device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  a.call("open", "/dev/userfaultfd", device.fd());
}

}  // namespace

extern const Probe probe_userfaultfd = {"userfaultfd", "handle page faults in user space (userfaultfd)",
                                        nullptr, run};

}  // namespace osb::probe
