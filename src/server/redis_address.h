#pragma once

// Where a Redis server is and how to log in there, as a DSN says it: redis://user:password@host:6379/0, or
// rediss:// for TLS, with ?ssl_ca_certs=/path/to/authority.pem where the system's trust store does not do.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::server {

struct RedisAddress {
  std::string host;  // a name or a numeric address
  uint16_t port = 6379;
  std::string user, password;  // "" for none
  uint32_t database = 0;
  bool tls = false;
  std::string authority_file;  // certificates to believe beside the system's; "" for none
};

// The message of an error is a cause that does not repeat the text, which may have a password in it.
Result<RedisAddress> parse_redis_address(std::string_view dsn);

}  // namespace osb::server
