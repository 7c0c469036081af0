#include <sys/klog.h>

#include "tools.h"

namespace osb::probe {
namespace {

// Reads a few bytes and shows none of them.
void run(Attempts& a, Args) {
  char bytes[64];
  const int kReadAll = 3, kSize = 10;
  a.call("syslog(2)", "read", ::klogctl(kReadAll, bytes, sizeof bytes));
  a.call("syslog(2)", "size", ::klogctl(kSize, nullptr, 0));
  for (const char* path : {"/dev/kmsg", "/proc/kmsg"}) {
    File log = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (!log.ok())
      a.call("open", path, -1);
    else if (const ssize_t n = ::read(log.fd(), bytes, sizeof bytes); n == 0)
      a.stopped("empty", path);  // a mask
    else
      a.call("read(2)", path, n);
  }
  a.call("open", "/dev/kmsg for writing", writable("/dev/kmsg"));
}

}  // namespace

extern const Probe probe_kernel_log = {"kernel_log", "read or write the kernel's log", nullptr, run};

}  // namespace osb::probe
