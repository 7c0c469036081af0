#pragma once

// The first bytes that a client sends, looked at for the host it wants: the name in a TLS ClientHello, the
// Host of an HTTP request. Strangers wrote them; both readers are bounded and copy nothing else.

#include <optional>
#include <string>
#include <string_view>

namespace osb::egress {

// What has been seen so far says...
struct Spoken {
  enum class Kind {
    more,     // ...nothing yet: it may become one of these
    tls,      // a ClientHello; `host` is empty when it names none
    http,     // a request; `host` is empty when it names none
    other,    // something else
    refused,  // ...something that only a trick would send: two hosts, a name with odd bytes
  } kind = Kind::more;
  std::string host = {};
};

// More than this is not waited for: a ClientHello with keys of the newest kinds has 2 KiB, heads of requests
// with large cookies 10.
inline constexpr size_t kMostSpoken = 32 * 1024;

Spoken read_client_hello(std::string_view bytes);
Spoken read_http_head(std::string_view bytes);
// Whichever it is.
Spoken read_spoken(std::string_view bytes);

}  // namespace osb::egress
