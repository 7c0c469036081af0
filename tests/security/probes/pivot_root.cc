#include <sys/mount.h>

#include "tools.h"

namespace osb::probe {
namespace {

// Every mount point at hand is tried as the new root. A pivot that works is turned back at once.
long pivot_and_back(const char* point) {
  File old_root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (::chdir(point) < 0) return -1;
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return -1;
  if (::fchdir(old_root.fd()) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0) ::umount2(".", MNT_DETACH);
  return 0;
}

void run(Attempts& a, Args) {
  Scratch scratch;
  if (scratch.ok() && ::mount("none", scratch.path(), "tmpfs", 0, nullptr) == 0) {
    a.gate("pivot_root(2)", "onto a new tmpfs", in_child([&] { return pivot_and_back(scratch.path()); }));
    ::umount2(scratch.path(), MNT_DETACH);
  }
  for (const char* point : {"/", "/dev", "/proc", "/sys", "/dev/shm", "/tmp"})
    if (a.gate("pivot_root(2)", point, in_child([&] { return pivot_and_back(point); }))) break;
}

}  // namespace

extern const Probe probe_pivot_root = {"pivot_root", "exchange the root file system", nullptr, run};

}  // namespace osb::probe
