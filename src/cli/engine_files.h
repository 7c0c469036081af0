#pragma once

// Certificates and key for an engine behind TLS, and a profile of system calls for its containers. Root reads
// them once, when the service starts, so the key may be root's alone; their texts travel to the server as the
// configuration does (cli/serve.h).

#include <optional>

#include "docker/engine_link.h"
#include "server/config.h"

namespace osb::cli {

// Code::invalid_argument: a file cannot be read.
Result<void> hand_on_engine_files(const server::Config& config);
// In the server. Nothing for an engine at a unix socket. Code::invalid_argument: what was read is of no use.
Result<std::optional<docker::TcpEngine>> inherited_engine(const server::Config& config);

// The same by whoever may read the files now, for `osb doctor`.
Result<std::optional<docker::TcpEngine>> engine_with_files(const server::Config& config);
// "": the profile is none of this host's files.
std::string seccomp_file(const server::Config& config);
// In the server: as an engine takes it. "": its own counts.
std::string inherited_seccomp_profile(const server::Config& config);

}  // namespace osb::cli
