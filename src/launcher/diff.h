#pragma once

// What a sandbox has changed, as lines of text: a letter, a blank, and the path inside, in which bytes that a
// line cannot have are written as \ooo.
//
//   A  added, or replaced by another
//   M  changed: it was there, and is another now
//   D  deleted
//
// The last line is "." when everything was said; else it is "!", the number of an error's code, and its
// message.
//
// In a process of its own; the sandbox goes on meanwhile, so what changes then may be told either way.

#include <string>

#include "base/error.h"
#include "launcher/state_dir.h"

namespace osb::launcher {

inline constexpr size_t kMostChanges = 1'000'000;

// Until everything is said, or nobody reads any more.
Result<void> write_diff(const StateDir& state, const std::string& id, int to);

}  // namespace osb::launcher
