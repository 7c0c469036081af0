#pragma once

// One connection to a registry, plain or by TLS, with calls that block: whoever pulls does nothing else. A
// peer that is silent for longer than the patience is Code::timeout. Belongs to one thread.

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "registry/url.h"
#include "tls/session.h"

namespace osb::registry {

class Connection {
 public:
  // `trust` may be null when the address is plain. Code::unavailable, Code::timeout.
  static Result<Connection> open(const Url& url, const tls::Trust* trust, std::chrono::seconds patience);

  // 0 at the end of the stream.
  Result<size_t> read(std::span<char> into);
  Result<void> write(std::string_view bytes);

 private:
  explicit Connection(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
  std::optional<tls::Session> tls_;
};

// Whether whoever listens there speaks TLS: by the first byte of what it answers to the beginning of a
// handshake. Plain HTTP is what a server speaks that answers and not by TLS; one that hangs up or is silent
// has said nothing. Code::unavailable (with ECONNREFUSED where nobody listens), Code::timeout.
Result<bool> speaks_tls(const Url& url, std::chrono::seconds patience);

}  // namespace osb::registry
