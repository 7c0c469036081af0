#pragma once

// What a service carries for a while: clients that come, use a sandbox and go.

#include "http.h"

namespace load {

// `clients` connections, each creating a sandbox, running `echo x` in it and deleting it, over and over, for
// `seconds`. Prints one JSON line. Returns the exit code: 1 when any step failed.
int sustained(const Service& service, int clients, double seconds);

}  // namespace load
