#include <limits>

#include "api/error_catalogue.h"
#include "api/list_query.h"
#include "base/strings.h"
#include "json/escape.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

std::string endpoint_base(const Service& service, const Request& request) {
  if (!service.config.server.eip.empty()) return service.config.server.eip;
  std::string host(request.head.headers.get("Host"));
  if (host.empty()) host = service.config.server.host + ":" + std::to_string(service.config.server.port);
  return host + std::string(mount_prefix(request));
}

// Every form of endpoint is the proxy's address: the server is the only way into a sandbox, and the string is
// valid from the moment the sandbox exists, whatever listens. Where ports are guarded it carries their token.
ApiResult<Answer> get_endpoint(Service& service, Request& request) {
  uint16_t port = TRY(port_parameter(request));
  http::Query query(request.head.query());
  bool proxied = TRY(api::boolean_parameter(query, "use_server_proxy", false));
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  TRY(api::integer_parameter(query, "expires", {-kAny, kAny, 0}));
  if (query.get("expires")) {
    if (proxied)
      return api::refuse(api::invalid_parameter("expires", "cannot be combined with use_server_proxy"));
    return api::refuse({.status = 400,
                        .code = "SANDBOX::API_NOT_SUPPORTED",
                        .message = "expires: this server does not sign endpoints",
                        .remedy = "leave expires out; the endpoint is valid as long as the sandbox"});
  }
  store::SandboxPtr row = TRY(service.lifecycle.get(request.params.find("id")->second));
  Answer answer;
  answer.body = "{\"endpoint\":";
  std::string endpoint = endpoint_base(service, request);
  if (service.config.guards_ports()) endpoint += "/t/" + service.tokens.token(row->id, port);
  json::append_string(answer.body, endpoint + "/sandboxes/" + row->id + "/proxy/" + std::to_string(port));
  answer.body.push_back('}');
  return answer;
}

}  // namespace

void add_endpoint_routes(http::Router& router, Service& service) {
  mount(router, service, "GET", "/sandboxes/{id}/endpoints/{port}", get_endpoint);
}

}  // namespace osb::server
