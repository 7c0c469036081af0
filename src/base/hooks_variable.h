#pragma once

// A sandbox's lifecycle hooks come to execd in a variable of the entry process, which takes it out. They are
// the request's: neither an image nor a client's environment may bring it.

namespace osb {

inline constexpr char kHooksVariable[] = "OPENSANDBOX_LIFECYCLE";

}  // namespace osb
