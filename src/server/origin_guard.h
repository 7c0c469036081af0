#pragma once

// Protection of a server without an API key against web pages. A page that a developer visits can send
// requests to loopback addresses, and with DNS rebinding even under its own name; so such a server answers
// only to names of its own, and no page drives it that is not listed in server.cors_origins. With a key the
// key is the protection, and CORS is open.

#include <string>
#include <string_view>

#include "api/error.h"
#include "http/message.h"
#include "server/config.h"

namespace osb::server {

// "host[:port]" without its port; brackets stay.
std::string_view host_without_port(std::string_view host);

// Pages that sandboxes serve through the proxy have this server's own origin. They may load more from
// sandboxes' ports, but drive neither the API (the difference which `target` makes) nor the execution API of
// any sandbox. Service workers are refused with a key, too.
enum class Target { api, proxied };
api::ApiResult<> check_origin(const Config& config, const http::RequestHead& head, Target target);

// Fields for an answer to a page of another origin; empty when the request has no Origin or the page may not
// read.
http::Headers cors_headers(const Config& config, const http::Headers& request);
bool is_preflight(const http::RequestHead& head);
http::Headers preflight_headers(const Config& config, const http::Headers& request);

}  // namespace osb::server
