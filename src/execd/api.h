#pragma once

// The front door of the HTTP API: access token, /proxy/{port}, then the routes. Requests that come for this
// very daemon through /proxy/<own port> are handled in place, not sent round the loopback.

#include "execd/core.h"
#include "execd/proxy.h"
#include "http/router.h"

namespace osb::execd {

inline constexpr uint16_t kEgressPort = 18080;

struct ApiOptions {
  std::string access_token;  // "" lets everybody in
  uint16_t own_port = 44772;
  // The port of the egress process where this daemon stands behind a server that keeps that port for it: 0
  // means that it is nobody's and can be reached as any other.
  uint16_t kept_port = 0;
};

class Api {
 public:
  Api(Core& core, ApiOptions options);

  http::Router& router() { return router_; }  // routes are added before serving
  io::Task<> handle(http::Request& request, http::ResponseWriter& response);

 private:
  bool authorized(const http::Request& request) const;
  io::Task<> dispatch(http::Request& request, http::ResponseWriter& response);

  Core& core_;
  ApiOptions options_;
  Proxy proxy_;
  http::Router router_;
};

}  // namespace osb::execd
