#pragma once

// Two sockets joined: what one receives the other sends, both ways, until both directions have ended or one
// breaks.

#include <string>

#include "io/socket.h"
#include "io/stopped_time.h"

namespace osb::http {

// `a` is who asked for it. The strings are what has been received already. The end of one direction is passed
// on and the other goes on, but not for ever: a side that stays silent after its peer has finished is given
// up. Two live sides may be silent as long as they like. Time in which `b` was stopped is no silence.
io::Task<> tunnel(io::Socket& a, std::string from_a, io::Socket& b, std::string from_b,
                  io::StoppedTime stopped = {});

}  // namespace osb::http
