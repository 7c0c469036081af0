#pragma once

// Locks on files and directories that end with the process which holds them (flock(2)).

namespace osb::sys {

// Whether this descriptor has the lock now. Patient for a second: a launcher that was killed may have left a
// child for a moment that had not yet closed what it inherited.
bool lock_soon(int file);
// The same without patience.
bool lock_now(int file);

}  // namespace osb::sys
