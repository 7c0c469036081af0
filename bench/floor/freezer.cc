#include "freezer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox.h"

namespace floorbench {
namespace {

void write_number(int dir, const char* file, long number) {
  int fd = ::openat(dir, file, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::dprintf(fd, "%ld", number) < 0) die(file);
  ::close(fd);
}

}  // namespace

Freezer::Freezer(pid_t process) : process_(process) {
  // A mount of our own that is attached nowhere: the mount table of this program is nearly empty.
  int context = ::fsopen("cgroup2", FSOPEN_CLOEXEC);
  if (context < 0 || ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) die("cgroup2");
  root_ = ::fsmount(context, FSMOUNT_CLOEXEC, 0);
  ::close(context);
  snprintf(name_, sizeof name_, "osb-floor-%d", static_cast<int>(::getpid()));
  if (root_ < 0 || ::mkdirat(root_, name_, 0755) < 0) die("make a cgroup");
  group_ = ::openat(root_, name_, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  write_number(group_, "cgroup.procs", process);
  freeze_ = ::openat(group_, "cgroup.freeze", O_WRONLY | O_CLOEXEC);
  events_ = ::openat(group_, "cgroup.events", O_RDONLY | O_CLOEXEC);
  if (freeze_ < 0 || events_ < 0) die("open the freezer");
}

Freezer::~Freezer() {
  thaw();
  write_number(root_, "cgroup.procs", process_);
  ::unlinkat(root_, name_, AT_REMOVEDIR);
  for (int fd : {freeze_, events_, group_, root_}) ::close(fd);
}

void Freezer::set(char wanted) {
  if (::write(freeze_, &wanted, 1) != 1) die("write cgroup.freeze");
  const char line[] = {'f', 'r', 'o', 'z', 'e', 'n', ' ', wanted, 0};
  for (;;) {
    char text[128];
    ssize_t n = ::pread(events_, text, sizeof text - 1, 0);
    if (n < 0) die("read cgroup.events");
    text[n] = 0;
    if (strstr(text, line) != nullptr) return;
    // The kernel tells of at most one change in some milliseconds; looking again sees the others.
    pollfd changed{events_, POLLPRI, 0};
    timespec limit{0, 100'000};
    ::ppoll(&changed, 1, &limit, nullptr);
  }
}

}  // namespace floorbench
