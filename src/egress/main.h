#pragma once

// The command line of the egress process. The launcher starts it with its descriptors
// (launcher/egress_process.h) and without the service's configuration; what it needs of that is in its
// arguments: --name-server, --deny and --allow, any number of each, --deny-webhook and --log-level, all as
// --NAME=VALUE. With "sidecar" as the first one it is something else (sidecar.h).

#include <string>
#include <string_view>
#include <vector>

namespace osb::egress {

inline constexpr std::string_view kSidecarArgument = "sidecar";

int egress_main(const std::vector<std::string>& arguments);

}  // namespace osb::egress
