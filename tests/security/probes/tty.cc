#include <linux/tiocl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tools.h"

namespace osb::probe {
namespace {

// A terminal shared with whoever started us takes typed characters from us: they are then executed outside.
void push(Attempts& a, const std::string& name, int fd) {
  char space = ' ';
  a.call("ioctl(2)", "TIOCSTI on " + name, ::ioctl(fd, TIOCSTI, &space));
  char ask = 6;  // shift state: the one request of TIOCLINUX that changes nothing
  a.call("ioctl(2)", "TIOCLINUX on " + name, ::ioctl(fd, TIOCLINUX, &ask));
}

// Whatever we were started with: a terminal of our own, made the controlling one, has nothing that would
// refuse but the protection itself.
void push_into_own(Attempts& a) {
  File master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (!master.ok() || ::grantpt(master.fd()) < 0 || ::unlockpt(master.fd()) < 0)
    return void(a.call("posix_openpt(3)", "a terminal of its own", -1));
  const Answer typed = in_child([&] {
    ::setsid();
    File terminal = ::open(::ptsname(master.fd()), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (!terminal.ok()) return -1;
    ::ioctl(terminal.fd(), TIOCSCTTY, 0);
    char space = ' ';
    return ::ioctl(terminal.fd(), TIOCSTI, &space);
  });
  a.call("ioctl(2)", "TIOCSTI on a terminal of its own", typed);
}

void run(Attempts& a, Args) {
  for (int fd = 0; fd <= 2; ++fd)
    if (::isatty(fd)) push(a, "descriptor " + std::to_string(fd), fd);
  push_into_own(a);
  File controlling = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (controlling.ok())
    push(a, "/dev/tty", controlling.fd());
  else
    a.call("open", "/dev/tty", -1);
  // Consoles of the machine. A pseudo terminal under the name of the console is the sandbox's own.
  for (const char* path :
       {"/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0", "/dev/vcs", "/dev/vcsa1"}) {
    struct stat about;
    if (::stat(path, &about) == 0 && major(about.st_rdev) >= 136 && major(about.st_rdev) <= 143) continue;
    a.call("access(2)", path, ::access(path, W_OK));
  }
}

}  // namespace

extern const Probe probe_tty = {"tty", "type into a terminal (TIOCSTI, TIOCLINUX) or use a console", nullptr,
                                run};

}  // namespace osb::probe
