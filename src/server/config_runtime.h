#pragma once

// [runtime] and [secure_runtime]: which runtimes the server offers, which of them a create gets that names
// none, and what stands between sandboxes and the kernel besides.

#include "server/config.h"
#include "server/config_reader.h"

namespace osb::server {

void read_runtime(ConfigFile& file, RuntimeSection& out);
// After [runtime], which says what of it can be had.
void read_secure_runtime(ConfigFile& file, Config& config);

}  // namespace osb::server
