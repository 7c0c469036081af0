#pragma once

// On a server with a key an id opens nothing. What opens a port of a sandbox is a token that only the
// endpoint answer gives: a keyed hash of id and port under a secret of the state directory. It travels in the
// endpoint string, because that is all that every client sends back:
//
//   <host><mount>/t/<token>/sandboxes/<id>/proxy/<port>
//
// Nothing is stored: a token is right for ever and ends with its sandbox, whose row is gone. A port's token
// opens that port; the one of the execution API opens all, since whoever runs commands inside reaches them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::server {

inline constexpr size_t kSecretBytes = 32;

// Immutable.
class EndpointTokens {
 public:
  explicit EndpointTokens(std::string secret) : secret_(std::move(secret)) {}
  // What the launcher made (launcher/secret.h). A file of another size is refused.
  static Result<EndpointTokens> open(const std::string& path);

  // 24 characters that need no escape in a URL: 144 bits.
  std::string token(std::string_view id, uint16_t port) const;
  // For the endpoint of port 18080, beside that: it opens the sandbox's network policy, and goes into a
  // header.
  std::string egress_token(std::string_view id) const;
  // In constant time, whichever token it is.
  bool opens(std::string_view token, std::string_view id, uint16_t port) const;

 private:
  std::string secret_;
};

// A request for a port of a sandbox, as the raw path of a request says it. Only plain spellings are one: no
// escapes before the port, no dots that something in between might resolve. Everything else is a path like
// any other and needs the key, so what is authorised here and what the router reads cannot differ.
struct ProxyPath {
  std::string_view token;  // empty: without one
  std::string_view id;
  std::string_view port;  // digits
};
std::optional<ProxyPath> parse_proxy_path(std::string_view raw_path);

// The path for logs and messages: with "-" in place of what may be a token.
std::string without_token(std::string_view raw_path);

}  // namespace osb::server
