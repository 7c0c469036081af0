#pragma once

// Removes trees that somebody hostile wrote: any depth, any names, no link followed, bounded descriptors and
// stack.

#include <string>

#include "base/error.h"

namespace osb::launcher {

// Removes `name`, whatever it is, from directory `trash`. Directories that lie deeper than a bound are moved
// up into `trash` under fresh names instead: call again until `trash` is empty. Success when there is nothing
// to remove.
Result<void> remove_from_trash(int trash, const std::string& name);

}  // namespace osb::launcher
