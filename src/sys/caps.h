#pragma once

// The capabilities that sandbox root keeps, all within its own user namespace. Everything else leaves the
// bounding set. Runs between clone and exec: no allocation, errors are negative errno values.

namespace osb::sys {

// Leaves exactly the kept set in bounding, permitted, effective and inheritable; ambient is emptied.
int drop_capabilities();

// Leaves none, and no way for user 0 to get any by exec.
int drop_all_capabilities();

}  // namespace osb::sys
