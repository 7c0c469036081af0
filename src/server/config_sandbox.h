#pragma once

// [sandbox]: what holds for creates that do not say otherwise, and sandboxes that wait for them. Four of its
// values may come from the environment: SANDBOX_POOL_SIZE, SANDBOX_CPU_QUOTA, SANDBOX_MEMORY_LIMIT,
// SANDBOX_ALLOW_NETWORK. They count where the file is silent; a value that cannot be read ends the start as
// one in the file does.

#include "server/config.h"
#include "server/config_reader.h"

namespace osb::server {

void read_sandbox(ConfigFile& file, const Environment& environment, Config& config);

// A mistake that is in no file: "environment: NAME: cause; remedy".
void wrong_variable(ConfigFile& file, std::string_view name, std::string_view cause, std::string_view remedy);

}  // namespace osb::server
