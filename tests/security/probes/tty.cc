#include <linux/tiocl.h>
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

void run(Attempts& a, Args) {
  for (int fd = 0; fd <= 2; ++fd)
    if (::isatty(fd)) push(a, "descriptor " + std::to_string(fd), fd);
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

extern const Probe probe_tty = {
    "tty", "type into an inherited terminal (TIOCSTI, TIOCLINUX) or use a console", nullptr, run};

}  // namespace osb::probe
