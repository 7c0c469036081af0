#pragma once

// `osb shell`: a program in a sandbox with this terminal as its own. Ctrl-P Ctrl-Q leaves it running; it can
// be come back to.

#include "cli/api.h"
#include "cli/arguments.h"

namespace osb::cli {

// A program with a terminal that is ours: keys, size and output are passed on until it ends; its exit status.
// With Leaving::yes, Ctrl-P Ctrl-Q leaves it running.
enum class Leaving { yes, no };
Task<Result<int>> open_terminal_of(Api& api, std::string id, ProgramRequest what, Leaving leaving);

// The program's exit status, 0 after leaving it.
io::Task<int> open_shell(ShellOptions options);

// What was typed, cut at the keys that leave. They may come in two reads, so a Ctrl-P is held back until the
// next key is known.
class DetachKeys {
 public:
  // What of it goes to the program; `left` is true from the moment the keys were there.
  std::string take(std::string_view typed);
  bool left() const { return left_; }

 private:
  bool held_ = false, left_ = false;
};

}  // namespace osb::cli
