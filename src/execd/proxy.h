#pragma once

// /proxy/{port}/...: to a server inside the sandbox, on its loopback.

#include "http/server.h"

namespace osb::execd {

class Proxy {
 public:
  // The request's target is what the upstream shall see.
  io::Task<> relay(http::Request& request, http::ResponseWriter& response, uint16_t port);
};

}  // namespace osb::execd
