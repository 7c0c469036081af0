#include <limits>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/list_query.h"
#include "base/strings.h"
#include "json/escape.h"
#include "json/string_lists.h"
#include "server/caller.h"
#include "server/egress_access.h"
#include "server/forwarded.h"
#include "server/origin_guard.h"
#include "server/preview_host.h"
#include "server/routes.h"
#include "server/secure_access.h"

namespace osb::server {
namespace {

using api::ApiResult;

std::string endpoint_base(const Service& service, const Request& request) {
  if (!service.config.server.eip.empty()) return service.config.server.eip;
  std::string host = forwarded_host(request, service.config.server.trusted_proxies);
  if (host.empty()) host = service.config.server.host + ":" + std::to_string(service.config.server.port);
  return host + std::string(mount_prefix(request));
}

// ":8080" of a host, or nothing.
std::string port_of(std::string_view host) {
  return std::string(host.substr(host_without_port(host).size()));
}

struct Wanted {
  uint16_t port = 0;
  bool proxied = false, preview = false;
  std::optional<uint64_t> expires = {};  // seconds since 1970: a signed endpoint
};

ApiResult<std::optional<uint64_t>> wanted_expiry(const Service& service, const http::Query& query) {
  auto text = query.get("expires");
  if (!text) return std::nullopt;
  // Numbers beyond those of integer_parameter are numbers, too.
  std::string_view digits = trim(*text);
  auto expires = parse_number<uint64_t>(digits);
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  if (!expires) TRY(api::integer_parameter(query, "expires", {-kAny, kAny, 0}));
  auto now = std::chrono::duration_cast<seconds>(service.clock.now().time_since_epoch()).count();
  if (!expires || *expires <= static_cast<uint64_t>(now))
    return api::refuse(api::invalid_parameter("expires", "must be a moment to come, in seconds since 1970"));
  return expires;
}

ApiResult<Wanted> read_query(const Service& service, const Request& request) {
  http::Query query(request.head.query());
  Wanted wanted{.port = TRY(port_parameter(request))};
  wanted.proxied = TRY(api::boolean_parameter(query, "use_server_proxy", false));
  wanted.preview = TRY(api::boolean_parameter(query, "preview", false));
  wanted.expires = TRY(wanted_expiry(service, query));
  if (wanted.expires && wanted.proxied)
    return api::refuse(api::invalid_parameter("expires", "cannot be combined with use_server_proxy"));
  if (wanted.expires && wanted.preview)
    return api::refuse(api::invalid_parameter("expires", "cannot be combined with preview"));
  bool own = wanted.port == runtime::kExecdPort || wanted.port == runtime::kEgressPort;
  if (wanted.preview && own)
    return api::refuse(api::invalid_parameter("preview", "is for ports of programs, not for this one"));
  return wanted;
}

// A preview belongs to a browser, which sends no header of ours.
ApiResult<std::string> preview_endpoint(const Service& service, const Request& request,
                                        const sandbox::Sandbox& row, uint16_t port) {
  if (is_secured(row))
    return api::refuse(api::invalid_parameter(
        "preview", "is not for sandboxes with secureAccess; ask for a signed endpoint with expires"));
  PreviewHosts previews(service.tokens, service.config.proxy.preview_domain);
  auto name = previews.name(row.id, port);
  if (!name)
    return api::refuse({.status = 400,
                        .code = "SANDBOX::API_NOT_SUPPORTED",
                        .message = "preview: this server has no domain for previews",
                        .remedy = "set proxy.preview_domain of the server, or leave preview out"});
  return *name + port_of(forwarded_host(request, service.config.server.trusted_proxies));
}

// Every form of endpoint is the proxy's address, unless the runtime has another way in: the string is valid
// from the moment the sandbox exists, whatever listens. Where ports are guarded it carries their token, which
// only those get who see the sandbox: with it, the sandbox opens for whoever holds it.
std::string proxy_endpoint(const Service& service, const Request& request, const sandbox::Sandbox& row,
                           const Wanted& wanted) {
  std::string endpoint = endpoint_base(service, request);
  if (wanted.expires) {
    endpoint += "/s/" + service.tokens.sign(row.id, wanted.port, *wanted.expires);
  } else if (service.config.guards_ports()) {
    endpoint += "/t/" + service.tokens.token(row.id, wanted.port);
  }
  return endpoint + "/sandboxes/" + row.id + "/proxy/" + std::to_string(wanted.port);
}

// What a client sends with every request to the endpoint.
json::StringMap endpoint_headers(const Service& service, const sandbox::Sandbox& row, const Wanted& wanted) {
  json::StringMap headers;
  if (wanted.port == runtime::kEgressPort)
    headers.emplace(kEgressAuthHeader, service.tokens.egress_token(row.id));
  if (is_secured(row) && !wanted.expires)
    headers.emplace(kSecureAccessHeader, service.tokens.access_token(row.id));
  return headers;
}

Task<ApiResult<Answer>> get_endpoint(Service& service, Request& request) {
  Wanted wanted = CO_TRY(read_query(service, request));
  const std::string& id = request.params.find("id")->second;
  sandbox::SandboxPtr row = CO_TRY(api::on_wire(co_await service.lifecycle.get(caller_of(request), id)));
  // Clients ask for this first, and after it they wait for 30 seconds at most.
  if (row->status.state == sandbox::State::pending) {
    co_await service.lifecycle.wait_started(id, Lifecycle::kHeld);
    row = CO_TRY(api::on_wire(co_await service.lifecycle.get(caller_of(request), id)));
  }
  std::string endpoint;
  if (wanted.preview) {
    endpoint = CO_TRY(preview_endpoint(service, request, *row, wanted.port));
  } else {
    bool direct = !wanted.proxied && !wanted.expires && !is_secured(*row);
    auto own = direct ? service.runtimes.of(row->runtime).endpoint(row->handle, wanted.port) : std::nullopt;
    endpoint = own ? *own : proxy_endpoint(service, request, *row, wanted);
  }
  Answer answer;
  json::append_string(answer.body = "{\"endpoint\":", endpoint);
  auto headers = endpoint_headers(service, *row, wanted);
  if (!headers.empty()) json::append_map(answer.body.append(",\"headers\":"), headers);
  answer.body.push_back('}');
  co_return answer;
}

}  // namespace

void add_endpoint_routes(http::Router& router, Service& service) {
  mount(router, service, "GET", "/sandboxes/{id}/endpoints/{port}", get_endpoint);
}

}  // namespace osb::server
