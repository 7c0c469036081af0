#pragma once

// Addresses of HTTP servers, as registries and the configuration write them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::registry {

struct Url {
  bool tls = true;
  std::string host;  // lower case; an address of version 6 without its brackets
  uint16_t port = 443;
  std::string target = "/";  // path and query, as they go into a request

  std::string named() const;      // the host as it is written in an address
  std::string authority() const;  // the Host field: with the port where it is not the usual one
  std::string origin() const;     // "https://registry.example"
  bool same_origin(const Url& other) const {
    return tls == other.tls && host == other.host && port == other.port;
  }
};

// http:// or https://, a host name or an address, perhaps a port. Code::corrupt for anything else: names
// and passwords in it, fragments, blanks, control characters.
Result<Url> parse_url(std::string_view text);
// Where a Location field leads from `base`: a whole URL, or a path that begins with one slash.
Result<Url> resolve(const Url& base, std::string_view location);

}  // namespace osb::registry
