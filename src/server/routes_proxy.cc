#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "base/last_words.h"
#include "base/strings.h"
#include "http/reverse_proxy.h"
#include "http/tunnel.h"
#include "http/websocket.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/egress_access.h"
#include "server/proxy_headers.h"
#include "server/routes.h"
#include "server/secure_access.h"

namespace osb::server {
namespace {

using api::ApiError;
using api::ApiResult;
using api::on_wire;
using sandbox::Principal;

constexpr auto kConnectLimit = std::chrono::seconds(30);

// What a client changes to that wants the bytes of a port and no HTTP: databases, VNC, whatever listens.
constexpr std::string_view kRawBytes = "opensandbox-tcp";

// Whoever asks execd whether it is healthy waits for the sandbox, and shall not wait for one that has ended.
Task<ApiError> explain(Service& service, Principal who, std::string id, bool asks_health, ApiError refusal) {
  if (!asks_health) co_return refusal;
  auto row = co_await service.lifecycle.get(who, id);
  using sandbox::State;
  if (!row || ((*row)->status.state != State::terminated && (*row)->status.state != State::failed))
    co_return refusal;
  auto output = co_await service.store.output(sandbox::Scope::of(who), id);
  std::string said = output && *output ? last_words((*output)->text, "\n") : "";
  const sandbox::Status& status = (*row)->status;
  co_return api::never_healthy(id, to_string(status.state), status.message, said);
}

Task<Result<io::Socket>> open_connection(Service& service, sandbox::SandboxPtr row, uint16_t port) {
  auto stream = CO_TRY(co_await service.runtimes.of(row->runtime).connect(row->handle, port));
  co_return io::to_socket(std::move(stream), co_await io::asio::this_coro::executor, service.pumps);
}

std::optional<http::ClientConnection> take_kept(Service& service, const std::string& id, uint16_t port) {
  if (port != runtime::kExecdPort) return std::nullopt;
  return service.connections.take(id);
}

Task<ApiResult<http::ClientConnection>> connect(Service& service, Principal who, sandbox::SandboxPtr row,
                                                uint16_t port) {
  const std::string& id = row->id;
  auto socket = co_await io::with_deadline(kConnectLimit, "connect", open_connection(service, row, port));
  if (socket) co_return http::ClientConnection(std::move(*socket));
  // The way to it is gone or full. That says nothing about the sandbox: only its row does.
  if (socket.error().code == Code::not_found || socket.error().code == Code::exhausted) {
    CO_TRY(on_wire(co_await service.lifecycle.get(std::move(who), id)));
    co_return api::refuse(api::to_api_error(sandbox::unreachable(id, socket.error())));
  }
  co_return api::refuse(api::backend_connection_failed(id, port, socket.error()));
}

ApiError relay_error(uint16_t port, const http::RelayResult& result) {
  const Error& error = result.error;
  if (result.client_slow) return api::body_too_slow();
  if (error.code == Code::invalid_argument) return api::malformed_http(error.message);  // the client's body
  return error.code == Code::timeout ? api::backend_timeout(port) : api::backend_response_failed(port, error);
}

// A kept connection may have been closed by the other side in the very moment it was used. The request may go
// out again on a new one when the first attempt cannot have had an effect, or when repeating it changes
// nothing. Not for a client that has gone.
bool may_repeat(const Request& request, const http::RelayResult& result) {
  if (result.client_gone) return false;
  if (!result.request_sent) return true;
  bool bodiless = request.body == nullptr || request.body->length() == 0;
  std::string_view method = request.head.method;
  return bodiless && result.error.code == Code::unavailable &&
         (method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
          method == "OPTIONS");
}

// One line of text: that is what clients of the egress process show.
Task<> refuse_egress(ResponseWriter& response) {
  http::Headers headers;
  headers.add("Content-Type", "text/plain; charset=utf-8");
  headers.add("X-Content-Type-Options", "nosniff");
  (void)co_await response.send(401, std::move(headers), "unauthorized\n");
}

// execd is a proxy too: /proxy/44772/proxy/18080/x would be another way to port 18080. Read more broadly than
// any execd reads it (escapes, repeated slashes), so that no spelling is a way round.
bool leads_round_egress(uint16_t port, std::string_view rest) {
  if (port != runtime::kExecdPort) return false;
  // Most are plain, and about something else.
  if (rest.find('%') == rest.npos && rest.find("proxy") == rest.npos) return false;
  // An execd does not decode: a broken escape behind the ports does not keep it from reading them.
  std::string path = percent_decode(rest, Plus::literal).value_or(std::string(rest));
  std::vector<std::string_view> words;
  for (std::string_view word : split(path, '/')) {
    if (!word.empty() && word != ".") words.push_back(word);
  }
  for (size_t at = 0; port == runtime::kExecdPort; at += 2) {
    if (at + 1 >= words.size() || words[at] != "proxy") return false;
    port = parse_number<uint16_t>(words[at + 1]).value_or(0);
  }
  return port == runtime::kEgressPort;
}

// By which it came in, if it did.
std::string_view token_of(const Request& request) {
  for (const char* name : {"token", "signature"}) {
    if (auto found = request.params.find(name); found != request.params.end()) return found->second;
  }
  return "";
}

bool wants_raw_bytes(const Request& request) {
  return http::wants_upgrade(request.head) && iequals(trim(request.head.headers.get("Upgrade")), kRawBytes) &&
         request.head.method == "GET" && request.body->length() == 0;
}

Task<> relay_bytes(Service& service, Request& request, ResponseWriter& response, sandbox::SandboxPtr row,
                   uint16_t port) {
  std::string id = row->id;
  auto upstream = co_await connect(service, caller_of(request), std::move(row), port);
  if (!upstream) co_return co_await answer_error(request, response, std::move(upstream.error()));
  http::Headers headers{{"Connection", "Upgrade"}, {"Upgrade", std::string(kRawBytes)}};
  if (!co_await response.start(101, std::move(headers), 0) || !co_await response.finish()) co_return;
  auto [client, received] = response.take_over();
  co_await http::tunnel(*client, std::move(received), upstream->socket(), "",
                        [&service, &id] { return service.lifecycle.stopped_time(id); });
}

// A request of one that can be talked to, for as long as `reached` is held: whatever goes through here is a
// use.
Task<> relay(Service& service, Request& request, ResponseWriter& response, Lifecycle::Reached reached,
             uint16_t port) {
  const std::string& id = reached.row->id;
  auto place = service.traffic.enter(id);
  if (!place)
    co_return co_await answer_error(request, response, api::too_much_traffic(service.traffic.most()));
  if (service.renewal != nullptr && request.head.headers.get("OpenSandbox-Access-Renew") != "skip")
    service.renewal->accessed(*reached.row);
  if (wants_raw_bytes(request)) co_return co_await relay_bytes(service, request, response, reached.row, port);

  std::string_view path = request.head.path();
  ProxyTarget target{path.substr(0, path.size() - request.rest.size()), port, is_preview(request)};
  Secrets secrets{.keys = service.keys.all(), .token = token_of(request)};
  auto what = [&] {
    return http::Forward{
        .head = upstream_head(request, target, secrets, service.config.server.trusted_proxies),
        .edit_response =
            [&service, &target](http::ResponseHead& head) {
              target.own_host ? edit_preview_response(head)
                              : edit_upstream_response(head, service.config, target);
            },
        .stopped = [&service, &id] { return service.lifecycle.stopped_time(id); }};
  };
  auto keep = [&](const http::RelayResult& result, http::ClientConnection& connection) {
    if (result.outcome == http::Relay::complete && port == runtime::kExecdPort && connection.reusable())
      service.connections.put(id, std::move(connection));
  };
  http::RelayResult result{.outcome = http::Relay::not_answered};
  bool again = true;
  if (auto kept = take_kept(service, id, port)) {
    result = co_await http::forward(request, response, *kept, what());
    keep(result, *kept);
    again = result.outcome == http::Relay::not_answered && may_repeat(request, result);
  }
  if (again) {
    std::string detour;
    auto made = co_await connect(service, caller_of(request), reached.row, port);
    if (!made && made.error().status == 502) {
      // What listens on the loopback inside only is reached by an execd that relays to it.
      detour = service.runtimes.of(reached.row->runtime).detour(reached.row->handle, port);
      if (!detour.empty())
        made = co_await connect(service, caller_of(request), reached.row, runtime::kExecdPort);
    }
    if (!made) co_return co_await answer_error(request, response, std::move(made.error()));
    auto sent = what();
    sent.head.target.insert(0, detour);
    result = co_await http::forward(request, response, *made, std::move(sent));
    keep(result, *made);
  }
  if (result.outcome == http::Relay::not_answered)
    co_await answer_error(request, response, relay_error(port, result));
}

// Why a request for a sandbox that can be talked to is not relayed, if it is not.
std::optional<ApiError> refusal_of(const Service& service, const Request& request,
                                   const sandbox::Sandbox& row) {
  if (auto allowed = check_secure_access(service, request, row); !allowed) return std::move(allowed.error());
  if (iequals(request.head.headers.get("Upgrade"), "websocket") && !http::wants_websocket(request.head))
    return api::upgrade_refused();
  return std::nullopt;
}

// Of one that is asleep, does not run or is not known.
Task<> reach_and_relay(Service& service, Request& request, ResponseWriter& response, uint16_t port) {
  Principal who = caller_of(request);
  std::string id = request.params.find("id")->second;
  auto reached = on_wire(co_await service.lifecycle.reach(who, id));
  if (!reached) {
    bool asks_health = port == runtime::kExecdPort && request.rest == "/ping";
    auto refusal = co_await explain(service, who, id, asks_health, std::move(reached.error()));
    co_return co_await answer_error(request, response, std::move(refusal));
  }
  if (auto refusal = refusal_of(service, request, *reached->row))
    co_return co_await answer_error(request, response, std::move(*refusal));
  co_await relay(service, request, response, std::move(*reached), port);
}

Task<> to_egress(Service& service, Request& request, ResponseWriter& response) {
  // It belongs to the egress process, which is outside. Whatever listens on it inside must not be taken for
  // that and be sent secrets.
  bool asks_health = request.rest == "/healthz";
  if (!asks_health && !may_use_egress(service, request, request.params.find("id")->second))
    return refuse_egress(response);
  return forward_to_egress(service, request, response, request.rest.empty() ? "/" : request.rest);
}

// What needs no wait is decided here, without a coroutine.
Task<> proxy(Service& service, Request& request, ResponseWriter& response) {
  auto port = port_parameter(request);
  if (!port) return answer_error(request, response, std::move(port.error()));
  if (*port == runtime::kEgressPort) return to_egress(service, request, response);
  if (leads_round_egress(*port, request.rest)) return answer_error(request, response, api::no_egress());
  auto reached = service.lifecycle.reach_now(caller_of(request), request.params.find("id")->second);
  if (!reached) return reach_and_relay(service, request, response, *port);
  if (auto refusal = refusal_of(service, request, *reached->row))
    return answer_error(request, response, std::move(*refusal));
  return relay(service, request, response, std::move(*reached), *port);
}

}  // namespace

void add_proxy_routes(http::Router& router, Service& service) {
  for (std::string prefix : {"/v1/t/{token}", "/t/{token}", "/v1/s/{expires}/{signature}",
                             "/s/{expires}/{signature}", "/v1", ""}) {
    router.add(
        "*", prefix + "/sandboxes/{id}/proxy/{port}{rest...}",
        [&service](Request& request, ResponseWriter& response) { return proxy(service, request, response); });
  }
}

}  // namespace osb::server
