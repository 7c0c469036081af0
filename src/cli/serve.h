#pragma once

// `opensandbox-server`: root starts it, and it becomes the launcher, which starts `osb server`
// (server_role.h) without privilege.
//
// The configuration is read once, as root, because its file may be readable for nobody else (it can hold the
// key). It travels to the server role in an environment variable, which only root and the service user can
// see.

#include "cli/arguments.h"
#include "cli/embedded.h"

namespace osb::cli {

// Returns only on failure: the exit status.
int become_service(const ServeOptions& options, const Embedded& embedded);

}  // namespace osb::cli
