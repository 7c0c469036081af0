#pragma once

// Values of the configuration that only this host can judge: accounts and directories.

#include "base/error.h"
#include "server/config.h"

namespace osb::cli {

// Looks and changes nothing. `is_root` says whether the service will change to native.user at all.
Result<void> check_host_values(const server::Config& config, bool is_root);

}  // namespace osb::cli
