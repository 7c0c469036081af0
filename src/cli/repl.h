#pragma once

// `osb repl`: a stateful prompt in a sandbox of its own.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// The exit status of the process.
io::Task<int> run_repl(ReplOptions options);

}  // namespace osb::cli
