#include "server/origin_guard.h"

#include <algorithm>

#include "api/error_catalogue.h"
#include "base/strings.h"
#include "runtime/runtime.h"

namespace osb::server {
namespace {

bool is_own_host(const Config& config, std::string_view host) {
  std::string_view name = host_without_port(host);
  if (is_loopback_host(name)) return true;
  // Whoever exposes a server without a key on purpose has said that the network in front of it is trusted;
  // there are as many names for it as that network likes.
  if (config.insecure_acknowledged && !is_loopback_host(config.server.host)) return true;
  std::string_view eip = std::string_view(config.server.eip).substr(0, config.server.eip.find('/'));
  return !eip.empty() && (iequals(host, eip) || iequals(name, host_without_port(eip)));
}

bool is_listed(const Config& config, std::string_view origin) {
  return std::ranges::any_of(config.server.cors_origins, [&](const std::string& listed) {
    return listed == "*" || iequals(listed, origin);
  });
}

// The page came from this very server: same name and same port.
bool is_same_origin(std::string_view origin, std::string_view host) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return iequals(origin.substr(scheme.size()), host);
  }
  return false;
}

// Sent by a page of this server's own origin, which can only be one that a sandbox serves. Browsers say so by
// Sec-Fetch-Site where the server's name is loopback's or the connection is encrypted; a WebSocket says
// Origin alone; elsewhere there is Referer, which a page can leave out.
bool is_own_page(const http::Headers& headers, std::string_view host) {
  if (const std::string* site = headers.find("Sec-Fetch-Site"); site != nullptr && *site == "same-origin")
    return true;
  if (const std::string* origin = headers.find("Origin")) return is_same_origin(*origin, host);
  std::string_view referer = headers.get("Referer");
  size_t scheme = referer.find("://");
  if (headers.contains("Sec-Fetch-Site") || scheme == referer.npos) return false;
  return is_same_origin(referer.substr(0, referer.find_first_of("/?#", scheme + 3)), host);
}

// Whatever is in front of /sandboxes/ID/proxy/PORT. The port is read as a number, as the route reads it.
bool reaches_execd(std::string_view path) {
  constexpr std::string_view kProxy = "/proxy/";
  size_t at = path.find("/sandboxes/");
  if (at == path.npos || (at = path.find(kProxy, at)) == path.npos) return false;
  std::string_view port = path.substr(at + kProxy.size());
  return parse_number<uint64_t>(port.substr(0, port.find('/'))) == uint64_t{runtime::kExecdPort};
}

bool cors_allows(const Config& config, std::string_view origin) {
  if (config.has_key() && config.server.cors_origins.empty()) return true;
  return is_listed(config, origin);
}

}  // namespace

std::string_view host_without_port(std::string_view host) {
  if (host.starts_with('[')) {
    size_t end = host.find(']');
    return end == host.npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

api::ApiResult<> check_origin(const Config& config, const http::RequestHead& head, Target target) {
  const http::Headers& headers = head.headers;
  if (headers.contains("Service-Worker")) return api::refuse(api::service_worker_refused());
  if (config.has_key()) return {};
  std::string_view host = headers.get("Host");
  if (!host.empty() && !is_own_host(config, host)) return api::refuse(api::host_not_allowed());
  const std::string* origin = headers.find("Origin");
  bool to_execd = reaches_execd(head.path());
  bool own_page = is_own_page(headers, host);
  if (own_page && (target == Target::api || to_execd)) {
    return api::refuse(api::origin_not_allowed("a page that a sandbox serves"));
  }
  if (origin != nullptr) {
    if (own_page || is_listed(config, *origin)) return {};
    return api::refuse(api::origin_not_allowed("a page of another origin"));
  }
  // Browsers send no Origin with images, scripts and the like of another site, but they do say where those
  // come from. Only a link that somebody follows is fine, into a window and not into a frame.
  std::string_view site = headers.get("Sec-Fetch-Site");
  std::string_view into = headers.get("Sec-Fetch-Dest");
  bool follows_link = headers.get("Sec-Fetch-Mode") == "navigate" && (into.empty() || into == "document") &&
                      (head.method == "GET" || head.method == "HEAD") && !to_execd;
  if (!site.empty() && site != "same-origin" && site != "none" && !follows_link) {
    return api::refuse(api::origin_not_allowed("a page of another site"));
  }
  return {};
}

http::Headers cors_headers(const Config& config, const http::Headers& request) {
  const std::string* origin = request.find("Origin");
  if (origin == nullptr || !cors_allows(config, *origin)) return {};
  http::Headers headers;
  bool any = config.has_key() && config.server.cors_origins.empty() && !request.contains("Cookie");
  headers.add("Access-Control-Allow-Origin", any ? "*" : *origin);
  if (!any) headers.add("Vary", "Origin");
  headers.add("Access-Control-Allow-Credentials", "true");
  headers.add("Access-Control-Expose-Headers", "OPEN-SANDBOX-ORIGIN, X-Request-ID");
  return headers;
}

bool is_preflight(const http::RequestHead& head) {
  return head.method == "OPTIONS" && head.headers.contains("Origin") &&
         head.headers.contains("Access-Control-Request-Method");
}

http::Headers preflight_headers(const Config& config, const http::Headers& request) {
  const std::string* origin = request.find("Origin");
  if (origin == nullptr || !cors_allows(config, *origin)) return {};
  http::Headers headers{{"Access-Control-Allow-Origin", *origin},
                        {"Vary", "Origin"},
                        {"Access-Control-Allow-Credentials", "true"},
                        {"Access-Control-Allow-Methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"},
                        {"Access-Control-Max-Age", "600"}};
  if (const std::string* wanted = request.find("Access-Control-Request-Headers")) {
    headers.add("Access-Control-Allow-Headers", *wanted);
  }
  return headers;
}

}  // namespace osb::server
