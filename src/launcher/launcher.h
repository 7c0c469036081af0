#pragma once

// The launcher: the only process of ours on the host that holds privilege. Single-threaded; one loop that
// answers the server's requests, starts the server again when it dies, and leaves sandboxes alone when it
// ends itself.

#include "launcher/settings.h"

namespace osb::launcher {

// Runs until SIGTERM or SIGINT. The exit status of the process.
int run(Settings settings);

}  // namespace osb::launcher
