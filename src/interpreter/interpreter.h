#pragma once

// The code interpreter as one thing: what execd's executable adds to the daemon.

#include "execd/daemon.h"

namespace osb::interpreter {

// Adds the routes. What it makes lives as long as the process.
void add_interpreter(execd::Parts& parts);

}  // namespace osb::interpreter
