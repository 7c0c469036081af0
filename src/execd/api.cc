#include "execd/api.h"

#include "base/strings.h"
#include "execd/reply.h"

namespace osb::execd {
namespace {

constexpr std::string_view kTokenHeader = "X-EXECD-ACCESS-TOKEN";
constexpr std::string_view kUnauthorized =
    R"({"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN","code":"UNAUTHORIZED",)"
    R"("message":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"})";

// /proxy/44772/command?x=1 -> 44772, /command?x=1
struct ProxyTarget {
  std::string port;
  std::string rest;
};

std::optional<ProxyTarget> parse_proxy_target(const http::RequestHead& head) {
  std::string_view path = head.path();
  if (!path.starts_with("/proxy/")) return std::nullopt;
  path.remove_prefix(7);
  size_t slash = std::min(path.find('/'), path.size());
  ProxyTarget target{std::string(path.substr(0, slash)), std::string(path.substr(slash))};
  if (target.rest.empty()) target.rest = "/";
  if (head.target.find('?') != std::string::npos) target.rest.append("?").append(head.query());
  return target;
}

}  // namespace

Api::Api(Core& core, ApiOptions options) : core_(core), options_(std::move(options)) {}

bool Api::authorized(const http::Request& request) const {
  return options_.access_token.empty() ||
         constant_time_equals(request.head.headers.get(kTokenHeader), options_.access_token);
}

io::Task<> Api::handle(http::Request& request, http::ResponseWriter& response) {
  if (const std::string* id = request.head.headers.find("X-Request-ID")) {
    request.request_id = *id;
    response.always("X-Request-ID", *id);
  }
  if (!authorized(request)) co_return co_await reply_json(response, std::string(kUnauthorized), 401);
  while (auto target = parse_proxy_target(request.head)) {
    auto port = parse_number<uint16_t>(target->port);
    if (!port || *port == 0) {
      co_return co_await reply_error(response,
                                     bad_request("the path must be /proxy/{port}/..., port 1 to 65535"));
    }
    request.head.target = std::move(target->rest);
    if (*port == options_.kept_port) {
      co_return co_await reply_error(
          response, {502, codes::kBadGateway, "port " + target->port + " belongs to the egress process"});
    }
    if (*port != options_.own_port) {
      request.head.headers.remove(kTokenHeader);  // not for the programs of the sandbox
      co_return co_await proxy_.relay(request, response, *port);
    }
  }
  co_await dispatch(request, response);
}

io::Task<> Api::dispatch(http::Request& request, http::ResponseWriter& response) {
  std::string_view path = request.head.path();
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (request.head.method == "GET" && path == "/ping") {
    // Until somebody has heard of the end: whoever waits for this sandbox shall not take it for a healthy
    // one.
    if (core_.ended) co_return co_await reply_error(response, {403, codes::kUnavailable, core_.how_it_ended});
    co_return co_await reply_empty(response);
  }
  auto match = router_.find(request.head.method, path);
  if (!match.handler) {
    std::string what = request.head.method + " " + std::string(path);
    co_return co_await reply_error(response, {404, codes::kNotFound, "there is no route " + what});
  }
  if (!core_.ready.is_set()) co_await core_.ready.wait();
  request.params = std::move(match.params);
  request.rest = std::move(match.rest);
  co_await (*match.handler)(request, response);
}

}  // namespace osb::execd
