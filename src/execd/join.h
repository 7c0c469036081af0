#pragma once

// execd a second time, in a container on another host: an engine runs it there, and what it is given and what
// it writes are a connection of the server's (docker/exec_stream.h). It leads that to the first execd's port
// on loopback and knows nothing of what is said.
//
// An engine ends the whole connection when standard output ends, so execd's end of sending is told apart: the
// number of bytes that were sent in all, as a line of its own on standard error. A connection that ends
// without it is broken.

#include <cstdint>

#include "base/error.h"

namespace osb::execd {

// Copies until both sides have ended, or nobody hears any more. The descriptors stay open.
Result<void> relay(int in, int out, int words, int socket);

// The exit code of the process.
int join_streams(uint16_t port);

}  // namespace osb::execd
