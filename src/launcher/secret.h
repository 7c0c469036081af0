#pragma once

// The secret of a state directory: random bytes, made once, from which the server derives the tokens that
// open sandboxes' ports. They stay the same over restarts and upgrades, so that endpoints which clients hold
// go on working. Only the service's user reads it, and nobody writes it.

#include <sys/types.h>

#include "base/error.h"

namespace osb::launcher {

// Makes it when it is missing, and puts its owner right when the service's user has changed. `dir` is the
// state directory, which nobody but root can write to.
Result<void> ensure_secret(int dir, const char* name, uid_t uid, gid_t gid);

}  // namespace osb::launcher
