#pragma once

// A connection to the engine whose containers are sandboxes, for the server: as root, who may use every
// socket. Where that is comes from whoever started the launcher.

#include <string>

#include "base/fd.h"

namespace osb::launcher {

// Does not wait. Code::exhausted: too many wait there already.
Result<Fd> connect_engine(const std::string& path);

}  // namespace osb::launcher
