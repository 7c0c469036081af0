#pragma once

// Who sent a request: the gate says it, routes read it.

#include "http/server.h"
#include "sandbox/principal.h"

namespace osb::server {

// Among the parameters of the route, under names that no pattern can have: the HTTP layer carries them and
// knows nothing of principals.
void set_caller(http::Request& request, sandbox::Principal who);
// Nobody, who sees nothing, for a request that did not come through the gate.
sandbox::Principal caller_of(const http::Request& request);

// Whether it came by the host name of a preview (preview_host.h), where the whole path is the program's.
void set_preview(http::Request& request);
bool is_preview(const http::Request& request);

}  // namespace osb::server
