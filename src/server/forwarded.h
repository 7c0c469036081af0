#pragma once

// Who sent a request, and by which name. The connection says it; a proxy in front of this server says it
// better, in X-Forwarded-For, -Host and -Proto, but anybody can write these. They are believed when they come
// from an address of server.trusted_proxies, and only as far as that proxy knows.

#include <span>
#include <string>

#include "http/server.h"
#include "sandbox/egress_target.h"

namespace osb::server {

using TrustedProxies = std::span<const sandbox::IpPrefix>;

struct Forwarded {
  // The client, then each proxy between it and us. Without a trusted one: whoever is connected.
  std::string addresses;
  std::string host;               // as the client wrote it; may be empty
  std::string protocol = "http";  // or "https"
};

Forwarded forwarded(const http::Request& request, TrustedProxies trusted);

// The name alone.
std::string forwarded_host(const http::Request& request, TrustedProxies trusted);

}  // namespace osb::server
