#pragma once

// Where clients find ports of this host that are published on all of its addresses (docker.direct).

#include <string>

#include "server/config.h"

namespace osb::cli {

// Whether this server itself is in a container, as those who make containers tell: by a file of Docker's or
// of Podman's, or by the variable of others. `root` is where the files are.
bool is_in_container(const server::Environment& environment, const std::string& root = "");

std::string public_host(const server::Config& config, bool in_container);

}  // namespace osb::cli
