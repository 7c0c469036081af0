#pragma once

// A connection of the server's, led to a port of a program in here.

#include <span>

#include "base/error.h"
#include "io/socket.h"

namespace osb::execd {

// Exactly so many: what follows belongs to whoever gets the connection.
io::Task<Result<void>> read_exactly(io::Socket& socket, std::span<char> into);

// Most programs listen on 127.0.0.1 or everywhere; some only on ::1.
io::Task<Result<io::Socket>> connect_inside(uint16_t port);

// Copies both ways until both have ended, or the server is gone (http/tunnel.h).
io::Task<> join(io::Socket server, io::Socket inside);

}  // namespace osb::execd
