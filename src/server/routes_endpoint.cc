#include <limits>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/list_query.h"
#include "base/strings.h"
#include "json/escape.h"
#include "server/caller.h"
#include "server/egress_access.h"
#include "server/forwarded.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

std::string endpoint_base(const Service& service, const Request& request) {
  if (!service.config.server.eip.empty()) return service.config.server.eip;
  std::string host = forwarded_host(request, service.config.server.trusted_proxies);
  if (host.empty()) host = service.config.server.host + ":" + std::to_string(service.config.server.port);
  return host + std::string(mount_prefix(request));
}

// Every form of endpoint is the proxy's address, unless the runtime has another way in: the string is valid
// from the moment the sandbox exists, whatever listens. Where ports are guarded it carries their token, which
// only those get who see the sandbox: with it, the sandbox opens for whoever holds it.
Task<ApiResult<Answer>> get_endpoint(Service& service, Request& request) {
  uint16_t port = CO_TRY(port_parameter(request));
  http::Query query(request.head.query());
  bool proxied = CO_TRY(api::boolean_parameter(query, "use_server_proxy", false));
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  CO_TRY(api::integer_parameter(query, "expires", {-kAny, kAny, 0}));
  if (query.get("expires")) {
    if (proxied)
      co_return api::refuse(api::invalid_parameter("expires", "cannot be combined with use_server_proxy"));
    co_return api::refuse({.status = 400,
                           .code = "SANDBOX::API_NOT_SUPPORTED",
                           .message = "expires: this server does not sign endpoints",
                           .remedy = "leave expires out; the endpoint is valid as long as the sandbox"});
  }
  const std::string& id = request.params.find("id")->second;
  sandbox::SandboxPtr row = CO_TRY(api::on_wire(co_await service.lifecycle.get(caller_of(request), id)));
  // Clients ask for this first, and after it they wait for 30 seconds at most.
  if (row->status.state == sandbox::State::pending) {
    co_await service.lifecycle.wait_started(id, Lifecycle::kHeld);
    row = CO_TRY(api::on_wire(co_await service.lifecycle.get(caller_of(request), id)));
  }
  Answer answer;
  answer.body = "{\"endpoint\":";
  auto own = proxied ? std::nullopt : service.runtimes.of(row->runtime).endpoint(row->handle, port);
  std::string endpoint = own ? *own : endpoint_base(service, request);
  if (!own) {
    if (service.config.guards_ports()) endpoint += "/t/" + service.tokens.token(row->id, port);
    endpoint += "/sandboxes/" + row->id + "/proxy/" + std::to_string(port);
  }
  json::append_string(answer.body, endpoint);
  if (port == runtime::kEgressPort) {
    answer.body += ",\"headers\":{\"" + std::string(kEgressAuthHeader) + "\":\"" +
                   service.tokens.egress_token(row->id) + "\"}";
  }
  answer.body.push_back('}');
  co_return answer;
}

}  // namespace

void add_endpoint_routes(http::Router& router, Service& service) {
  mount(router, service, "GET", "/sandboxes/{id}/endpoints/{port}", get_endpoint);
}

}  // namespace osb::server
