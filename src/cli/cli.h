#pragma once

// The command lines of `osb` and of `opensandbox-server`, from words to exit status.

#include "cli/embedded.h"

namespace osb::cli {

int osb_main(int argc, const char* const* argv, const Embedded& embedded);
int opensandbox_server_main(int argc, const char* const* argv, const Embedded& embedded);

}  // namespace osb::cli
