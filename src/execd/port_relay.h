#pragma once

// Ports of a container, for the server: it connects, names a port, and is led to that port of the loopback.
// Bytes are copied, because a socket from in here would be shared with whoever has it besides, who could make
// it block the server's only loop.

#include "base/fd.h"
#include "io/task.h"

namespace osb::execd {

// What is said first: the port, two bytes, the higher one first. What is answered: one byte, the errno of the
// connect, 0 when all that follows is the port's.
inline constexpr size_t kPortBytes = 2;

// Connections run in `tasks`.
io::Task<> relay_ports(io::TaskGroup& tasks, Fd listener);

}  // namespace osb::execd
