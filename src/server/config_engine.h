#pragma once

// Where the engine of [docker] is: a unix socket, or an address and the files for TLS. What the configuration
// does not name comes from the variables that Docker's own client reads: DOCKER_HOST, DOCKER_TLS_VERIFY,
// DOCKER_CERT_PATH. They mean nothing to a service without this runtime.

#include "server/config.h"
#include "server/config_reader.h"

namespace osb::server {

// With HOME for the beginning ~/.
std::string expanded_home(std::string path, const Environment& environment);

void read_engine(ConfigFile& file, Section& in, const Environment& environment, Config& config);

}  // namespace osb::server
