#pragma once

// `osb shell`: a program in a sandbox with this terminal as its own. Ctrl-P Ctrl-Q leaves it running; it can
// be come back to.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

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
