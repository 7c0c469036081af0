#pragma once

// Relays one request to an upstream connection and its answer back, streaming both ways with constant memory:
// the answer may start before the request body has ended. Hop-by-hop fields never cross.

#include <functional>

#include "http/client.h"

namespace osb::http {

// Removes hop-by-hop fields and those that Connection names.
void strip_hop_by_hop(Headers& headers);

struct Forward {
  RequestHead head;                                  // what the upstream shall see: method, target, headers
  std::function<void(ResponseHead&)> edit_response;  // optional
  io::Duration head_timeout =
      std::chrono::seconds(180);  // from the end of the request body to the answer's head
};

enum class Relay {
  complete,      // the whole answer was relayed; the upstream connection may be reusable
  not_answered,  // nothing was sent to the client yet: the caller still owes an answer (see error)
  cut,           // the answer had started; the client's connection was aborted
};
struct RelayResult {
  Relay outcome = Relay::complete;
  Error error;
  bool request_sent =
      false;  // when not_answered: whether any byte of the request may have reached the upstream
};
Task<RelayResult> forward(Request& request, ResponseWriter& response, ClientConnection& upstream,
                          Forward what);

}  // namespace osb::http
