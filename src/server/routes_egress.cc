// What clients ask of a sandbox's egress: at its endpoint of port 18080, and at the lifecycle routes, where
// the caller has shown the key already.

#include <errno.h>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "base/strings.h"
#include "http/reverse_proxy.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/egress_access.h"
#include "server/routes.h"
#include "server/secure_access.h"

namespace osb::server {
namespace {

using api::on_wire;
using sandbox::State;

constexpr auto kConnectLimit = std::chrono::seconds(30);

Task<Result<io::Socket>> open_connection(Service& service, sandbox::SandboxPtr row) {
  auto stream = CO_TRY(co_await service.runtimes.of(row->runtime).connect(row->handle, runtime::kEgressPort));
  co_return io::to_socket(std::move(stream), co_await io::asio::this_coro::executor, service.pumps);
}

http::RequestHead upstream_head(const Request& request, std::string path, std::string token) {
  http::RequestHead head;
  head.method = request.head.method;
  head.target = std::move(path);
  if (size_t mark = request.head.target.find('?'); mark != std::string::npos)
    head.target.append(std::string_view(request.head.target).substr(mark));
  head.headers.add("Host", "egress");
  // Nothing else is of interest there, and much of it is secret.
  for (std::string_view name : {"Content-Type", "Content-Length", "Transfer-Encoding"}) {
    if (const std::string* value = request.head.headers.find(name))
      head.headers.add(std::string(name), *value);
  }
  if (!token.empty()) head.headers.add(std::string(kEgressAuthHeader), std::move(token));
  return head;
}

// What is beside a container on another host is paused with it, and can end.
api::ApiError why_not(const Error& error, const sandbox::Sandbox& row) {
  bool away = error.code == Code::unavailable || error.code == Code::timeout;
  if (away) return api::to_api_error(sandbox::unreachable(row.id, error));
  if (error.code != Code::wrong_state) return api::no_egress();
  if (row.status.state == State::paused)
    return api::to_api_error(sandbox::paused(row.id, to_string(row.status.state)));
  return api::egress_ended(error.message);
}

Task<> network_policy(Service& service, Request& request, ResponseWriter& response) {
  return forward_to_egress(service, request, response, "/policy");
}

Task<> egress_log(Service& service, Request& request, ResponseWriter& response) {
  return forward_to_egress(service, request, response, "/log");
}

}  // namespace

bool may_use_egress(const Service& service, const Request& request, std::string_view id) {
  return constant_time_equals(request.head.headers.get(kEgressAuthHeader), service.tokens.egress_token(id));
}

Task<> forward_to_egress(Service& service, Request& request, ResponseWriter& response, std::string path) {
  std::string id = request.params.find("id")->second;
  // Its egress is outside: one that is paused has it, too, unless that is a container of its own.
  auto row = on_wire(co_await service.lifecycle.get(caller_of(request), id));
  if (!row) co_return co_await answer_error(request, response, std::move(row.error()));
  if (auto allowed = check_secure_access(service, request, **row); !allowed)
    co_return co_await answer_error(request, response, std::move(allowed.error()));
  auto place = service.traffic.enter(id);
  if (!place)
    co_return co_await answer_error(request, response, api::too_much_traffic(service.traffic.most()));
  auto socket = co_await io::with_deadline(kConnectLimit, "connect", open_connection(service, *row));
  if (!socket) co_return co_await answer_error(request, response, why_not(socket.error(), **row));
  http::ClientConnection upstream(std::move(*socket));
  std::string token = service.runtimes.of((*row)->runtime).egress_token((*row)->handle);
  http::Forward what{.head = upstream_head(request, std::move(path), std::move(token)),
                     .edit_response = [](http::ResponseHead& head) { head.headers.remove("Server"); }};
  auto result = co_await http::forward(request, response, upstream, std::move(what));
  if (result.outcome != http::Relay::not_answered) co_return;
  // A connection for a sandbox that has no egress ends without a word. One that breaks says nothing of it.
  bool broke = result.error.sys_errno == ECONNABORTED;
  co_await answer_error(request, response,
                        broke ? api::to_api_error(sandbox::unreachable(id, result.error)) : api::no_egress());
}

void add_egress_routes(http::Router& router, Service& service) {
  for (std::string prefix : {"/v1", ""}) {
    for (const char* method : {"GET", "PUT", "PATCH", "DELETE"}) {
      router.add(method, prefix + "/sandboxes/{id}/networkpolicy",
                 [&service](Request& request, ResponseWriter& response) {
                   return network_policy(service, request, response);
                 });
    }
    router.add("GET", prefix + "/sandboxes/{id}/egress/log",
               [&service](Request& request, ResponseWriter& response) {
                 return egress_log(service, request, response);
               });
  }
}

}  // namespace osb::server
