#pragma once

// Relays one request to an upstream connection and its answer back, streaming both ways with constant memory:
// the answer may start before the request body has ended, and every piece of it is passed on at once.
// Hop-by-hop fields never cross. A WebSocket handshake or another change of protocols that the upstream
// accepts (101) turns both connections into one tunnel.

#include <functional>

#include "http/client.h"
#include "io/stopped_time.h"

namespace osb::http {

// Removes hop-by-hop fields and those that Connection names. A caller strips what a client sent before it
// adds fields of its own, so that a client cannot name those.
void strip_hop_by_hop(Headers& headers);
// The same question about one field of these.
bool is_hop_by_hop(std::string_view name);
bool is_named_by_connection(const Headers& headers, std::string_view name);

struct Forward {
  RequestHead head{};                                  // what the upstream shall see: method, target, headers
  std::function<void(ResponseHead&)> edit_response{};  // optional
  // From the end of the request body to the answer's head.
  io::Duration head_timeout = std::chrono::seconds(180);
  io::StoppedTime stopped{};  // optional: how long the upstream was stopped; no limit runs meanwhile
};

enum class Relay {
  complete,      // the whole answer was relayed; the upstream connection may be reusable
  not_answered,  // nothing was sent to the client yet: the caller still owes an answer (see error)
  cut,           // the answer had started; the client's connection was aborted
};
struct RelayResult {
  Relay outcome = Relay::complete;
  // Code::invalid_argument: the client's body is malformed; Code::corrupt: the upstream does not speak
  // HTTP/1.1; Code::timeout: no head in time; Code::unavailable: the upstream closed, or the client is gone;
  // Code::cancelled.
  Error error{};
  // When not_answered: whether any byte of the request may have reached the upstream, or its body is used up.
  // Else the same request can be relayed again: what was read of its body was put back.
  bool request_sent = false;
  bool client_slow = false;  // when not_answered: the client's body did not come in time
  bool client_gone = false;  // nobody is left to answer
};
// The upstream must be idle. Host and X-Forwarded-* are the caller's to set in `what.head`.
Task<RelayResult> forward(Request& request, ResponseWriter& response, ClientConnection& upstream,
                          Forward what);

}  // namespace osb::http
