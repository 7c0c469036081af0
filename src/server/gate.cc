#include "server/gate.h"

#include <algorithm>
#include <array>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "base/ids.h"
#include "base/strings.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/origin_guard.h"
#include "server/page_headers.h"
#include "server/request_load.h"

namespace osb::server {

using sandbox::Principal;

namespace {

constexpr size_t kMaxRequestId = 200;

bool is_open_path(std::string_view path) {
  constexpr std::array<std::string_view, 5> kOpen = {"/health", "/version", "/openapi.json", "/docs",
                                                     "/redoc"};
  return std::ranges::find(kOpen, path) != kOpen.end();
}

std::string allowed_methods(std::vector<std::string> methods) {
  std::string out;
  if (std::ranges::find(methods, "GET") != methods.end()) methods.push_back("HEAD");
  std::ranges::sort(methods);
  auto repeated = std::ranges::unique(methods);
  methods.erase(repeated.begin(), repeated.end());
  for (const std::string& method : methods) out.append(out.empty() ? "" : ", ").append(method);
  return out;
}

}  // namespace

std::string Gate::new_request_id() {
  if (ids_ == 0) id_beginning_ = new_hex_id().substr(0, 24);
  std::string id = id_beginning_;
  for (int shift = 28; shift >= 0; shift -= 4) id.push_back("0123456789abcdef"[ids_ >> shift & 15]);
  ++ids_;
  return id;
}

Task<> Gate::handle(Request& request, ResponseWriter& response) {
  std::string_view given = trim(request.head.headers.get("X-Request-ID"));
  bool own = !given.empty() && given.size() <= kMaxRequestId;
  request.request_id = own ? std::string(given) : new_request_id();
  response.always("X-Request-ID", request.request_id);
  if (previews_.is_preview(request.head.headers.get("Host"))) return handle_preview(request, response);
  MaybeProxied proxied = parse_proxy_path(request.head.path());
  Target target = proxied ? Target::proxied : Target::api;
  if (target == Target::api) protect_api_answer(response);
  if (auto allowed = check_origin(config_, request.head, target); !allowed) {
    return answer_error(request, response, std::move(allowed.error()));
  }
  if (is_preflight(request.head)) {
    http::Headers headers = preflight_headers(config_, request.head.headers);
    if (headers.size() > 0) {
      headers.add("Content-Type", "text/plain; charset=utf-8");
      return answer(response, 200, std::move(headers), "OK");
    }
  }
  for (const auto& [name, value] : cors_headers(config_, request.head.headers)) response.always(name, value);
  auto who = identify(request, proxied);
  if (!who) return answer_error(request, response, std::move(who.error()));
  return dispatch(request, response, std::move(*who), proxied);
}

// The handle is the right to come, and the origin is the program's own: which pages may speak to it, and what
// a browser keeps of it, is its own business.
Task<> Gate::handle_preview(Request& request, ResponseWriter& response) {
  auto preview = previews_.read(request.head.headers.get("Host"));
  std::string_view path = request.head.path();
  if (!preview || !path.starts_with('/')) {
    protect_api_answer(response);
    co_return co_await answer_error(request, response, api::no_such_preview());
  }
  auto match = router_.find(request.head.method, "/sandboxes/" + preview->id + "/proxy/" +
                                                     std::to_string(preview->port) + std::string(path));
  if (match.handler == nullptr) co_return co_await answer_error(request, response, api::no_such_preview());
  request.params = std::move(match.params);
  request.rest = std::move(match.rest);
  set_caller(request, Principal::holder_of_endpoint(preview->id));
  set_preview(request);
  co_await (*match.handler)(request, response);
}

// Without a look at what exists: who has neither token nor key gets one answer for every id.
bool Gate::opens_by_itself(const ProxyPath& path) const {
  if (config_.proxy.open && path.token.empty()) return true;
  auto port = parse_number<uint16_t>(path.port);
  return port && tokens_.opens(path.token, path.id, *port);
}

// A signature that is there has to be right, also where none is needed.
api::ApiResult<bool> Gate::is_signed(const MaybeProxied& path) const {
  if (!path || path->signature.empty()) return false;
  switch (tokens_.check(*path, wall_now())) {
    case Signature::none:
      return false;
    case Signature::valid:
      return true;
    case Signature::expired:
      return api::refuse(api::signature_expired());
    case Signature::wrong:
      break;
  }
  return api::refuse(api::wrong_signature());
}

api::ApiResult<Principal> Gate::identify(const Request& request, const MaybeProxied& proxied) const {
  bool by_signature = TRY(is_signed(proxied));
  if (keys_.empty()) return Principal::owner_named(sandbox::kDefaultOwner);
  if (is_open_path(request.head.path())) return Principal::nobody();
  if (by_signature || (proxied && opens_by_itself(*proxied)))
    return Principal::holder_of_endpoint(proxied->id);
  std::string_view key = request.head.headers.get("OPEN-SANDBOX-API-KEY");
  if (key.empty()) return api::refuse(proxied ? api::missing_endpoint_token() : api::missing_api_key());
  auto owner = keys_.owner_of(key);
  if (!owner) return api::refuse(api::invalid_api_key());
  return Principal::owner_named(*owner);
}

Task<> Gate::dispatch(Request& request, ResponseWriter& response, Principal who,
                      const MaybeProxied& proxied) {
  const std::string_view whole = request.head.path();
  std::string_view path = whole;
  std::string_view method = request.head.method;
  auto match = router_.find(method, path);
  if (match.handler == nullptr && method == "HEAD") match = router_.find("GET", path);
  while (match.handler == nullptr && match.allowed.empty() && path.size() > 1 && path.ends_with('/')) {
    path.remove_suffix(1);
    match = router_.find(method == "HEAD" ? "GET" : method, path);
  }
  if (match.handler == nullptr) {
    api::ApiError error = match.allowed.empty() ? api::no_such_route()
                                                : api::method_not_allowed(allowed_methods(match.allowed));
    return answer_error(request, response, std::move(error));
  }
  request.params = std::move(match.params);
  set_caller(request, std::move(who));
  request.rest = std::move(match.rest);

  // Streams through the proxy last as long as their sandbox; the limit on connections bounds those.
  bool is_proxied = path.size() == whole.size() ? proxied.has_value() : parse_proxy_path(path).has_value();
  Load load = is_proxied ? Load::light : load_of(method, path);
  if (load == Load::light) return (*match.handler)(request, response);
  if (config_.server.limit_concurrency > 0 && in_flight_ >= config_.server.limit_concurrency) {
    constexpr auto kWhy = "Too many requests are in progress.";
    return answer_error(
        request, response,
        load == Load::create ? api::to_api_error(sandbox::too_many_creates(kWhy)) : api::overloaded(kWhy));
  }
  return handle_counted(*match.handler, request, response);
}

Task<> Gate::handle_counted(const http::Handler& handler, Request& request, ResponseWriter& response) {
  struct InFlight {
    int64_t& count;
    explicit InFlight(int64_t& c) : count(c) { ++count; }
    ~InFlight() { --count; }
  } in_flight(in_flight_);
  co_await handler(request, response);
}

}  // namespace osb::server
