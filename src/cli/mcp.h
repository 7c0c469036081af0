#pragma once

// `osb mcp`: the server's sandboxes as tools for language models (Model Context Protocol), over standard
// input and output or over HTTP.

#include "cli/mcp_options.h"
#include "io/task.h"

namespace osb::cli {

// Ends with its input, or with a signal.
io::Task<int> serve_mcp(McpOptions options);

}  // namespace osb::cli
