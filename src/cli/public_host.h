#pragma once

// Where clients find ports of this host that are published on all of its addresses (docker.direct).

#include <string>

#include "server/config.h"

namespace osb::cli {

std::string public_host(const server::Config& config);

}  // namespace osb::cli
