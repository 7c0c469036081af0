#pragma once

// How processes ended, in words for people.

#include "runtime/native/control.h"
#include "runtime/runtime.h"

namespace osb::runtime {

// Of the last state.
End describe_end(const ControlState& ended);
// Of the state "failed": what could not be executed, and the cause.
std::string why_not_started(const ControlState& failed);
// From a pidfd of a process that has ended, where the kernel keeps its exit status; else "lost". -1 is
// allowed.
End end_from_pidfd(int pidfd);

}  // namespace osb::runtime
