#pragma once

// On a server with a key an id opens nothing. What opens a port of a sandbox is a token that only the
// endpoint answer gives: a keyed hash of id and port under a secret of the state directory. It travels in the
// endpoint string, because that is all that every client sends back:
//
//   <host><mount>/t/<token>/sandboxes/<id>/proxy/<port>
//
// Nothing is stored: a token is right for ever and ends with its sandbox, whose row is gone. A port's token
// opens that port; the one of the execution API opens all, since whoever runs commands inside reaches them.
//
// A signed endpoint is for one port and until a second that it names:
//
//   <host><mount>/s/<expires, base 36>/<signature>/sandboxes/<id>/proxy/<port>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/sha256.h"

namespace osb::server {

inline constexpr size_t kSecretBytes = 32;

// A request for a port of a sandbox, as the raw path of a request says it. Only plain spellings are one: no
// escapes before the port, no dots that something in between might resolve. Everything else is a path like
// any other and needs the key, so what is authorised here and what the router reads cannot differ.
struct ProxyPath {
  std::string_view token;               // empty: without one
  std::string_view expires, signature;  // of a signed endpoint; empty: it is none
  std::string_view id;
  std::string_view port;  // digits
};
std::optional<ProxyPath> parse_proxy_path(std::string_view raw_path);

enum class Signature { none, wrong, expired, valid };

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

  // What a secured sandbox wants to see besides (secure_access.h).
  std::string access_token(std::string_view id) const;

  // "<expires>/<signature>" of a signed endpoint that holds until the end of that second.
  std::string sign(std::string_view id, uint16_t port, uint64_t expires) const;
  Signature check(const ProxyPath& path, WallTime now) const;

  // For whatever else has to be ours and unguessable. No two uses begin with the same word.
  Sha256Digest keyed_hash(std::string_view what) const;

 private:
  std::string signature(std::string_view id, uint16_t port, std::string_view expires) const;

  std::string secret_;
};

// The path for logs and messages: with "-" in place of what may be a token.
std::string without_token(std::string_view raw_path);

}  // namespace osb::server
