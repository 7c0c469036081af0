#pragma once

// How the half of a socket pair that carries another connection (io/stream.h) tells its reader that this one
// broke. Closing it would be an end like any other, and a unix socket has no reset: so it takes a name
// before, which whoever finds the end can see.

#include "io/socket.h"

namespace osb::io {

// Before `half` is closed.
void mark_broken(Socket& half);

// What it means that a read has found the end: 0, or Code::unavailable for a connection that broke, with
// ECONNABORTED, which no socket of another kind tells a reader.
Result<size_t> end_of_stream(Socket& socket);

}  // namespace osb::io
