#pragma once

// `osb run`: a sandbox for the time of one command.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// The exit status of the process.
io::Task<int> run_in_sandbox(RunOptions options);

}  // namespace osb::cli
