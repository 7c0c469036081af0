#pragma once

// The parent of a server for the occasion (occasion.h): starts it, and ends it when nobody has used it for a
// while. Killed, it leaves the server behind, which then goes on until `osb server stop`.

#include "cli/arguments.h"
#include "cli/embedded.h"

namespace osb::cli {

int keep_occasion(const OccasionOptions& options, const Embedded& embedded);

}  // namespace osb::cli
