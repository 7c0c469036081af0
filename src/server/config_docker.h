#pragma once

// [docker]: the engine, and what its containers may. Where the runtime is another one the keys are checked
// and have no effect, which is said.

#include "server/config.h"
#include "server/config_reader.h"

namespace osb::server {

// What docker.seccomp_profile says when there is to be none.
inline constexpr char kUnconfined[] = "unconfined";

void read_docker(ConfigFile& file, const Environment& environment, Config& config);
// What other sections ask of it that cannot be had; after all of them were read.
void check_reach(ConfigFile& file, Config& config);

}  // namespace osb::server
