#pragma once

// `osb egress log`: what a sandbox tried to reach, and what came of it.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// A record of the server in one line for people; as it is when it is something else.
std::string egress_line(std::string_view record);

io::Task<int> print_egress_log(EgressLogOptions options);

}  // namespace osb::cli
