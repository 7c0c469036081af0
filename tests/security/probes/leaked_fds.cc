#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tools.h"

namespace osb::probe {
namespace {

// A regular file or directory behind 0, 1 or 2 must be the one that its name leads to inside; else it is the
// host's.
bool is_ours(int fd, const std::string& target) {
  struct stat open_file, named;
  if (::fstat(fd, &open_file) < 0 || (!S_ISREG(open_file.st_mode) && !S_ISDIR(open_file.st_mode)))
    return true;
  if (target.empty() || target[0] != '/') return true;  // memfd and the like
  if (target.ends_with(" (deleted)")) return S_ISREG(open_file.st_mode);
  return ::stat(target.c_str(), &named) == 0 && named.st_ino == open_file.st_ino &&
         named.st_dev == open_file.st_dev;
}

bool is_null_device(int fd) {
  struct stat open_file;
  return ::fstat(fd, &open_file) == 0 && S_ISCHR(open_file.st_mode) && open_file.st_rdev == makedev(1, 3);
}

void run(Attempts& a, Args) {
  for (int fd = 0; fd < 4096; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) continue;
    const std::string target = read_link("/proc/self/fd/" + std::to_string(fd)).value_or("?");
    // execd puts the sandbox's own null device where a session's private descriptors were.
    if (fd > 2 && is_null_device(fd)) continue;
    if (fd > 2)
      a.got("inherited descriptor " + std::to_string(fd) + " -> " + target);
    else if (!is_ours(fd, target))
      a.got("descriptor " + std::to_string(fd) + " is a file of the host: " + target);
  }
  a.stopped("only 0, 1 and 2 are open, and none is a file of the host");
}

}  // namespace

extern const Probe probe_leaked_fds = {"leaked_fds", "find descriptors that the runtime left open", nullptr,
                                       run};

}  // namespace osb::probe
