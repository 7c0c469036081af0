#pragma once

// execd a second time, in a container on another host: an engine runs it there, and what it is given and what
// it writes are a connection of the server's (docker/exec_stream.h). It leads that to the first execd's port
// on loopback and knows nothing of what is said.
//
// An engine ends the whole connection when standard output ends, so execd's end of sending is told apart: the
// number of bytes that were sent in all, as a line of its own on standard error. A connection that ends
// without it is broken.

#include <chrono>
#include <cstdint>

#include "base/fd.h"

namespace osb::execd {

// A connection to a port on loopback, for whoever has the other side of `in`: given up when that is closed
// and nothing was said. Nothing tells when execd listens, so it is tried until then. It does not block.
Result<Fd> connect_for(int in, uint16_t port, std::chrono::milliseconds patience);

// Copies until both sides have ended, or nobody hears any more. The descriptors stay open.
Result<void> relay(int in, int out, int words, int socket);

// The exit code of the process.
int join_streams(uint16_t port);

}  // namespace osb::execd
