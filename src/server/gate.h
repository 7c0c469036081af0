#pragma once

// Where every request enters: request id, protection against pages, CORS, API key, the cap on requests in
// flight, and the dispatch to a route with the answers for what has none. Belongs to one loop.

#include "http/router.h"
#include "server/answer.h"
#include "server/config.h"

namespace osb::server {

// Proxy requests need no key: SDKs do not send it there, and the id is the capability. Looser paths do need
// it.
bool is_open_proxy_path(std::string_view raw_path);

class Gate {
 public:
  Gate(const Config& config, const http::Router& router) : config_(config), router_(router) {}
  Task<> handle(Request& request, ResponseWriter& response);

 private:
  api::ApiResult<> authorise(const Request& request) const;
  Task<> dispatch(Request& request, ResponseWriter& response);

  const Config& config_;
  const http::Router& router_;
  int64_t in_flight_ = 0;
};

}  // namespace osb::server
