#pragma once

// The address of a webhook, as an operator writes it: http://HOST[:PORT][/PATH] or https://. No login, no
// fragment.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::sandbox {

struct Webhook {
  std::string host;  // a name or an address, without brackets
  uint16_t port = 80;
  bool tls = false;
  std::string target = "/";
  std::string authority;  // for the Host field, as it was written
};

Result<Webhook> parse_webhook(std::string_view url);

}  // namespace osb::sandbox
