#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tools.h"

namespace osb::probe {
namespace {

// Reads a few bytes and shows none of them.
void run(Attempts& a, Args) {
  char bytes[64];
  const int kReadAll = 3, kSize = 10;
  a.call("syslog(2)", "read", ::klogctl(kReadAll, bytes, sizeof bytes));
  a.call("syslog(2)", "size", ::klogctl(kSize, nullptr, 0));
  // Opened, not read: what is read from /proc/kmsg is gone for everybody else.
  for (const char* path : {"/dev/kmsg", "/proc/kmsg"}) {
    File log = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    if (log.ok() && ::fstat(log.fd(), &about) == 0 && about.st_rdev == makedev(1, 3))
      a.stopped("masked by the null device", path);
    else
      a.call("open", path, log.fd());
  }
  a.call("open", "/dev/kmsg for writing", writable("/dev/kmsg"));
}

}  // namespace

extern const Probe probe_kernel_log = {"kernel_log", "read or write the kernel's log", nullptr, run};

}  // namespace osb::probe
