#pragma once

// Connections that somebody else has accepted: under a kernel of its own execd cannot listen where the server
// connects, so each connection comes as a descriptor through a socket that was there from the start.

#include <functional>

#include "base/fd.h"
#include "execd/core.h"
#include "io/socket.h"

namespace osb::execd {

// Where connections go, by the byte that comes with each.
struct Receivers {
  std::function<void(io::Socket)> api;      // 'a'
  std::function<void(io::Socket)> control;  // 'c'
};

// A copy of it out of the way of the standard descriptors, which become the null device's.
Result<Fd> take_channel(int number);

// Says that execd is there, and takes connections until the other side is gone.
io::Task<> take_connections(Core& core, Fd channel, Receivers receivers);

}  // namespace osb::execd
