#pragma once

// Names of hosts, by the system's resolver, which works in a thread of its own.

#include <string>
#include <vector>

#include "io/task.h"

namespace osb::io {

// Numeric addresses of a host; nothing is asked for one that is numeric already, or for "localhost". The
// limit is the caller's.
Task<Result<std::vector<std::string>>> look_up(std::string host);

}  // namespace osb::io
