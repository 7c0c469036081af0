#pragma once

// The entry process, started through execd's control connection.

#include <optional>

#include "runtime/native/control.h"
#include "runtime/runtime.h"

namespace osb::runtime {

// Returns when it runs, or has done what it was for already: then with what execd said of its end.
Task<Created<std::optional<ControlState>>> start_through(ControlConnection& control, EntryProcess entry);
// The second half, for one that was sent. `first`: what was heard already.
Task<Created<std::optional<ControlState>>> hear_started(ControlConnection& control,
                                                        std::optional<ControlState> first = {});

}  // namespace osb::runtime
