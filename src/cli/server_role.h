#pragma once

// `osb server`: the unprivileged process that answers clients. Started by the launcher with the listener and
// the launcher's socket as descriptors 3 and 4. Here, and only here, it is decided which runtimes a server
// has.

#include <cstddef>

#include "cli/arguments.h"
#include "cli/embedded.h"

namespace osb::cli {

// How the configuration reaches this role; see serve.h.
inline constexpr char kConfigVariable[] = "OSB_CONFIGURATION";
inline constexpr char kConfigSourceVariable[] = "OSB_CONFIGURATION_SOURCE";
inline constexpr size_t kMaxConfigBytes = 100 * 1024;  // the kernel takes 128 KiB in one variable

// Runs until SIGTERM or until the launcher is gone: the exit status.
int run_server_role(const ServerRoleOptions& options, const Embedded& embedded);

}  // namespace osb::cli
