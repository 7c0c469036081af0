#pragma once

// `osb egress-process`: what sandboxes send out goes through it. Started by the launcher with its descriptors
// (launcher/egress_process.h) and without the service's configuration; what it needs of that is in its
// arguments.

#include "cli/arguments.h"

namespace osb::cli {

int run_egress_role(const EgressRoleOptions& options);

}  // namespace osb::cli
