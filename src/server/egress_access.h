#pragma once

// The way to a sandbox's egress process, which decides what it reaches: whoever changes a policy must be its
// owner, and never the sandbox itself.

#include <string>
#include <string_view>

#include "server/answer.h"
#include "server/service.h"

namespace osb::server {

inline constexpr std::string_view kEgressAuthHeader = "OPENSANDBOX-EGRESS-AUTH";

// Whether the request has the token that the endpoint of port 18080 was given with.
bool may_use_egress(const Service& service, const Request& request, std::string_view id);

// Relays the request to the egress of the sandbox in its path, as a request for `path` there.
Task<> forward_to_egress(Service& service, Request& request, ResponseWriter& response, std::string path);

}  // namespace osb::server
