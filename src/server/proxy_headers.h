#pragma once

// Which fields cross the proxy, in both directions.

#include <span>
#include <string>
#include <string_view>

#include "http/server.h"
#include "server/config.h"
#include "server/forwarded.h"
#include "server/keys.h"

namespace osb::server {

struct ProxyTarget {
  std::string_view prefix;  // the part of the request's path up to and including the port
  uint16_t port = 0;
  // A preview: the program is alone at its host name, which it sees, as it does Cookie and Authorization.
  bool own_host = false;
};

// What must not reach a sandbox, under whatever name it was sent. Borrowed; empty ones are none.
struct Secrets {
  std::span<const Key> keys = {};  // of the API, whosoever
  std::string_view token = {};     // by which this request came in
};

// What the program in the sandbox sees: the raw path behind the prefix, the query, no credentials of the API,
// and X-Forwarded-* as this connection has them, or a proxy that is trusted, whatever others claim. Fields
// and parameters that hold a secret are left out; on a server with a key Referer, which may hold anybody's
// token, is cut to its origin.
http::RequestHead upstream_head(const http::Request& request, const ProxyTarget& target,
                                const Secrets& secrets, TrustedProxies trusted = {});

// Repeated fields stay repeated. A Location that starts with one slash gets the prefix under which the client
// sees the program, token included. What the page links to learns the origin at most.
void edit_upstream_response(http::ResponseHead& head, std::string_view visible_prefix);
void edit_upstream_response(http::ResponseHead& head, const Config& config, const ProxyTarget& target);

// The same for a preview, whose paths are the program's own. Its name opens it, so no other site is told; and
// what a browser keeps for other hosts of the domain, too, is left out.
void edit_preview_response(http::ResponseHead& head);

// The prefix in the eyes of the client: behind server.eip it is the path part of that plus the proxy path.
std::string visible_prefix(const Config& config, const ProxyTarget& target);

}  // namespace osb::server
