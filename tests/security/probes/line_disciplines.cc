#include <stdlib.h>
#include <sys/ioctl.h>

#include "tools.h"

namespace osb::probe {
namespace {

// A number that no kernel has, and the one that every terminal starts with.
constexpr int kNobodys = 29, kOrdinary = 0;

// Setting a line discipline makes the kernel look for a module by number, for anybody who has a terminal;
// what it loads (n_gsm, n_hdlc, slip, ...) has a history.
void run(Attempts& a, Args) {
  File master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (!master.ok() || ::grantpt(master.fd()) < 0 || ::unlockpt(master.fd()) < 0)
    return a.skipped("no pseudo terminal to be had");
  File terminal = ::open(::ptsname(master.fd()), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (!terminal.ok()) return a.skipped("its own pseudo terminal cannot be opened");
  for (const File* end : {&master, &terminal}) {
    for (const int number : {kNobodys, kOrdinary})
      a.gate("ioctl(2)", "TIOCSETD " + std::to_string(number), ::ioctl(end->fd(), TIOCSETD, &number));
  }
  // The kernel uses the low half of a request.
  a.gate("ioctl(2)", "TIOCSETD with a high bit",
         ::syscall(SYS_ioctl, terminal.fd(), static_cast<unsigned long>(TIOCSETD) | 1UL << 32, &kNobodys));
}

}  // namespace

extern const Probe probe_line_disciplines = {
    "line_disciplines", "make the kernel load a module by setting a terminal's line discipline", nullptr,
    run};

}  // namespace osb::probe
