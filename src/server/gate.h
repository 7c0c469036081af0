#pragma once

// Where every request enters: request id, protection against pages, CORS, API key, the cap on requests in
// flight, and the dispatch to a route with the answers for what has none. What leaves it has a caller
// (caller.h). Belongs to one loop.

#include "http/router.h"
#include "sandbox/principal.h"
#include "server/answer.h"
#include "server/config.h"
#include "server/endpoint_token.h"
#include "server/keys.h"
#include "server/preview_host.h"

namespace osb::server {

class Gate {
 public:
  Gate(const Config& config, const Keys& keys, const EndpointTokens& tokens, const http::Router& router)
      : config_(config),
        keys_(keys),
        tokens_(tokens),
        previews_(tokens, config.proxy.preview_domain),
        router_(router) {}
  // Nothing in here waits before the handler of the route does, so almost none of it is a coroutine of its
  // own.
  Task<> handle(Request& request, ResponseWriter& response);

  // No two alike, and no secret: a random beginning and a count, so that a request costs no system call.
  std::string new_request_id();

 private:
  using MaybeProxied = std::optional<ProxyPath>;
  api::ApiResult<sandbox::Principal> identify(const Request& request, const MaybeProxied& proxied) const;
  api::ApiResult<bool> is_signed(const MaybeProxied& path) const;
  bool opens_by_itself(const ProxyPath& path) const;
  Task<> handle_preview(Request& request, ResponseWriter& response);
  Task<> dispatch(Request& request, ResponseWriter& response, sandbox::Principal who,
                  const MaybeProxied& proxied);
  Task<> handle_counted(const http::Handler& handler, Request& request, ResponseWriter& response);

  const Config& config_;
  const Keys& keys_;
  const EndpointTokens& tokens_;
  PreviewHosts previews_;
  const http::Router& router_;
  int64_t in_flight_ = 0;
  std::string id_beginning_;
  uint32_t ids_ = 0;
};

}  // namespace osb::server
