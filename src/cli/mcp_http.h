#pragma once

// `osb mcp` over HTTP: each POST to /mcp has one message and is answered with one. There is no stream beside
// that, and no session that a client would have to keep.
//
// Whoever reaches the port uses the key of the server behind it. So it listens on loopback and takes no
// requests of web pages, or it wants a token.

#include "cli/mcp_options.h"
#include "cli/terminal.h"
#include "io/task.h"

namespace osb::cli {

io::Task<Result<int>> serve_mcp_http(McpOptions options, Signals& signals);

}  // namespace osb::cli
