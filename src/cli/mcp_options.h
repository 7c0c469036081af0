#pragma once

// The command line of `osb mcp`, as values.

#include <string>

#include "cli/arguments.h"

namespace osb::cli {

Result<void> check_mcp(const McpOptions& options);

}  // namespace osb::cli
