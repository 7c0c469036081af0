#pragma once

// `osb exec`: a command in a sandbox that is there.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// The command's exit status; Ctrl-C interrupts the command, twice gives up on it.
io::Task<int> run_in_existing(ExecOptions options);

}  // namespace osb::cli
