#pragma once

// A pseudo terminal pair.

#include <sys/types.h>

#include "base/fd.h"

namespace osb::execd {

struct Terminal {
  Fd master;  // not blocking
  Fd slave;
};

struct TerminalSize {
  uint16_t columns = 80, rows = 24;
};

// Works without /dev/pts being visible where the kernel can open the other side by itself.
Result<Terminal> open_terminal(TerminalSize size);
void resize_terminal(int master, TerminalSize size);
// To the group that is in the foreground of the terminal of `session`: an interactive shell gives every job
// its own.
bool signal_foreground(int master, pid_t session, int signal);

}  // namespace osb::execd
