#pragma once

// `osb forward`: a port of this machine that is a port of a sandbox. `osb preview`: where a browser finds
// one.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// "LOCAL:ID:PORT", or "ID:PORT" for the same number here.
Result<Forwarding> parse_forwarding(std::string_view text);

// Until it is interrupted. Each connection is a tunnel of its own through the server.
io::Task<int> forward_ports(ForwardOptions options);
io::Task<int> print_preview(PreviewOptions options);

}  // namespace osb::cli
