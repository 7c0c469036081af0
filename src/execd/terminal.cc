#include "execd/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace osb::execd {
namespace {

Result<Fd> open_slave(int master) {
  int fd = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0) return Fd(fd);
  unsigned number = 0;
  if (::ioctl(master, TIOCGPTN, &number) < 0) return fail_errno("terminal");
  return open_at(AT_FDCWD, "/dev/pts/" + std::to_string(number), O_RDWR | O_NOCTTY);
}

}  // namespace

Result<Terminal> open_terminal(TerminalSize size) {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_NONBLOCK;
  auto master = open_at(AT_FDCWD, "/dev/ptmx", kFlags);
  if (!master) master = open_at(AT_FDCWD, "/dev/pts/ptmx", kFlags);
  if (!master) return std::unexpected(std::move(master).error().in("terminal"));
  int unlocked = 0;
  if (::ioctl(master->get(), TIOCSPTLCK, &unlocked) < 0) return fail_errno("unlock terminal");
  Fd slave = TRY(open_slave(master->get()));
  resize_terminal(master->get(), size);
  return Terminal{std::move(*master), std::move(slave)};
}

void resize_terminal(int master, TerminalSize size) {
  winsize window{};
  window.ws_col = size.columns;
  window.ws_row = size.rows;
  ::ioctl(master, TIOCSWINSZ, &window);
}

bool signal_foreground(int master, pid_t session, int signal) {
  // The kernel itself sends only what a keyboard can.
  if (::ioctl(master, TIOCSIG, signal) == 0) return true;
  pid_t group = 0;
  if (::ioctl(master, TIOCGPGRP, &group) < 0 || group <= 1) return false;
  // A terminal remembers the number of a group that has ended. If it was given away since, then to a process
  // of another session, or to one that leads no group yet and cannot be hit.
  pid_t owner = ::getsid(group);
  if (owner >= 0 && owner != session) return false;
  return ::kill(-group, signal) == 0;
}

}  // namespace osb::execd
