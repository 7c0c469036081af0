#pragma once

// A sandbox's row as the runtime keeps it beside the sandbox: should the database be lost, cut or rolled
// back, the row is made again from this, and what runs goes on.

#include <string>
#include <string_view>

#include "base/error.h"
#include "sandbox/sandbox.h"

namespace osb::server {

// Everything but state and identity, which the runtime knows. Long parts are left out when it would be too
// long.
std::string to_record(const sandbox::Sandbox& row);
// Code::corrupt for anything else.
Result<sandbox::Sandbox> from_record(std::string_view record);

}  // namespace osb::server
