#pragma once

// A port of a sandbox under a host name of its own, for browsers: {port}-{handle}.{domain}. The page there
// has an origin that it shares with nobody, absolute links work, cookies and Authorization pass.
//
// The handle opens the port, so it cannot be guessed, and it does not show the id. It is the id encrypted
// under the secret of the state directory, with a keyed hash of id and port: nothing is stored, and a handle
// works for its port alone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/endpoint_token.h"

namespace osb::server {

struct Preview {
  std::string id;
  uint16_t port = 0;
};

// Immutable.
class PreviewHosts {
 public:
  // No domain: there are no previews.
  PreviewHosts(const EndpointTokens& tokens, std::string domain)
      : tokens_(tokens), domain_(std::move(domain)) {}

  const std::string& domain() const { return domain_; }
  // Nothing for an id that is no UUID.
  std::optional<std::string> name(std::string_view id, uint16_t port) const;

  // Whether a Host names a preview, whichever; any other is a name of the server.
  bool is_preview(std::string_view host) const;
  // Nothing when its handle is none of ours.
  std::optional<Preview> read(std::string_view host) const;

 private:
  const EndpointTokens& tokens_;
  std::string domain_;
};

}  // namespace osb::server
