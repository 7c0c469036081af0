#pragma once

// One request over and over, as clients that watch a server send it.

#include <string>
#include <vector>

namespace load {

// `clients` kept connections, each with one GET under way at any time, the paths in turn, for `seconds`. A
// path with "PATCH:" before it is a change: a PATCH whose body has another value each time.
// Prints one JSON line. Returns the exit code: 1 when an answer was not 200.
int requests(int port, const std::vector<std::string>& paths, int clients, double seconds);

}  // namespace load
