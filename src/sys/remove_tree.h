#pragma once

// Removes trees that somebody hostile wrote: any depth, any names, no link followed, bounded descriptors and
// stack.

#include <chrono>
#include <string>

#include "base/error.h"

namespace osb::sys {

// Removes `name`, whatever it is, from directory `trash`. Directories that lie deeper than a bound are first
// moved to the top of `name`. Success when there is nothing to remove.
Result<void> remove_from_trash(int trash, const std::string& name);

// The same for at most about so long; false when something is left: call again. Whoever has many things to
// remove gives each a turn, so that a large one does not hold up the others.
Result<bool> remove_from_trash(int trash, const std::string& name, std::chrono::milliseconds turn);

}  // namespace osb::sys
