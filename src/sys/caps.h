#pragma once

// The capabilities that sandbox root keeps, all within its own user namespace. Everything else leaves the
// bounding set. Runs between clone and exec: no allocation, errors are negative errno values.

#include <initializer_list>

namespace osb::sys {

// Effective and permitted are exactly these from now on, for this thread. 0 or -errno.
bool has_capability(int capability);
int set_capabilities(std::initializer_list<int> capabilities);
// The same, and no way to get others: they leave the bounding set, too; ambient is emptied.
int keep_capabilities(std::initializer_list<int> capabilities);
// Everything that is permitted is effective.
int raise_permitted_capabilities();

// Leaves exactly the kept set in bounding, permitted and effective, without those of `besides`; inheritable
// and ambient are emptied.
int drop_capabilities(std::initializer_list<int> besides = {});

// Leaves none, and no way for user 0 to get any by exec.
int drop_all_capabilities();

}  // namespace osb::sys
