#pragma once

// A program in a sandbox with our own standard input, output and error, byte for byte, and our signals. What
// `osb run` and `osb exec` do once there is a sandbox.

#include <chrono>

#include "cli/api.h"
#include "cli/terminal.h"

namespace osb::cli {

struct Program {
  ProgramRequest what;
  bool input = false;  // pass standard input on; else the program's is empty
  std::optional<std::chrono::milliseconds> timeout = {};
  bool last = false;  // the sandbox goes with it
};

// The program's exit status as a shell has it: its code, 128+N after signal N, 124 when its time was up, 127
// and 126 when it could not be started. An error with EPIPE says that nobody reads our output any more.
// Signals that come are passed on to the program; a second one of the same kind ends the wait with
// Code::cancelled.
Task<Result<int>> run_program(Api& api, std::string id, Program program, Signals& signals);

}  // namespace osb::cli
