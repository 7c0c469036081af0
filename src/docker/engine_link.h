#pragma once

// The way to an engine: its unix socket, or TCP, where TLS guards it. What breaks under TLS is heard by
// whoever carries the bytes; a link remembers it for whoever asked and got no answer.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "http/client.h"
#include "tls/session.h"

namespace osb::docker {

using io::Task;

struct TcpEngine {
  std::string host;
  uint16_t port = 0;
  std::shared_ptr<const tls::Trust> trust = {};  // none: in the clear
};

// A connection to the engine's socket that somebody else has made, who may do more.
using ConnectForUs = std::function<Task<Result<io::Socket>>()>;

struct EngineAddress {
  std::string socket;
  std::optional<TcpEngine> tcp = {};  // instead of the socket
  ConnectForUs by_root = {};          // where the service's user may not use the socket; may be empty
};

struct Link {
  http::ClientConnection connection;
  std::shared_ptr<std::optional<Error>> broken = {};  // under TLS

  // Why an exchange failed.
  Error cause(Error error) const { return broken && *broken ? **broken : error; }
};

// What carries TLS runs in `pumps`. Has a deadline of its own.
Task<Result<Link>> open_link(EngineAddress address, io::TaskGroup& pumps);

// A sentence for people after an error on the way, or nothing.
std::string remedy_for(const Error& error, const EngineAddress& address);

}  // namespace osb::docker
