#pragma once

// What `osb doctor` says of the Docker engine that the server's configuration names: whether it answers and
// can be used, and if not, why and what to do.

#include "cli/machine_probe.h"
#include "server/config.h"

namespace osb::cli {

// The configuration as the server would read it. `flag`: a file that was named; "": the usual places, where
// none need be.
Result<server::Config> configuration_at(const std::string& flag);

// Required where sandboxes are containers, wanted where they may be, a note otherwise.
Finding examine_engine(const Result<server::Config>& config);

}  // namespace osb::cli
