#pragma once

// Making directories with their parents.

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace osb::execd {

// Like mkdir -p: absolute clean path, mode 0777 less the umask. True when the last directory is new. An
// existing non-directory in the way is an error.
Result<bool> make_directories(const std::string& path, mode_t mode = 0777);

}  // namespace osb::execd
