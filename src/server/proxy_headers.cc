#include "server/proxy_headers.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "http/reverse_proxy.h"
#include "server/page_headers.h"

namespace osb::server {
namespace {

// Host and the forwarding fields are made anew; the rest are secrets of the API or switches of this proxy.
constexpr std::array<std::string_view, 14> kNeverForwarded = {
    "Host",
    "Expect",  // answered here
    "Authorization",
    "Cookie",
    "OPEN-SANDBOX-API-KEY",
    "OpenSandbox-Secure-Access",
    "OpenSandbox-Access-Renew",
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Forwarded-Prefix",
    "X-Real-IP",
};

bool is_forwarded(std::string_view name) {
  return std::ranges::none_of(kNeverForwarded, [&](std::string_view other) { return iequals(name, other); });
}

}  // namespace

http::RequestHead upstream_head(const http::Request& request, const ProxyTarget& target) {
  http::RequestHead head;
  head.method = request.head.method;
  std::string_view path = request.rest;
  while (path.starts_with("//")) path.remove_prefix(1);
  head.target = path.empty() ? "/" : path;
  if (size_t mark = request.head.target.find('?'); mark != std::string::npos) {
    head.target.append(request.head.target, mark);
  }
  head.headers.add("Host", "127.0.0.1:" + std::to_string(target.port));
  http::Headers received = request.head.headers;
  http::strip_hop_by_hop(
      received);  // first: a client's Connection must not name the fields that are added here
  for (const auto& [name, value] : received) {
    if (is_forwarded(name)) head.headers.add(name, value);
  }
  head.headers.add("X-Forwarded-Proto", "http");
  if (const std::string* host = request.head.headers.find("Host"))
    head.headers.add("X-Forwarded-Host", *host);
  if (!request.peer.empty()) head.headers.add("X-Forwarded-For", request.peer);
  return head;
}

void edit_upstream_response(http::ResponseHead& head, std::string_view visible_prefix) {
  head.headers.remove("Server");
  head.headers.remove("X-Request-ID");  // ours is the one of this request
  confine_proxied_answer(head.headers, visible_prefix);
  std::string_view location = head.headers.get("Location");
  if (location.starts_with('/') && !location.starts_with("//")) {
    head.headers.set("Location", std::string(visible_prefix) + std::string(location));
  }
}

std::string visible_prefix(const Config& config, const ProxyTarget& target) {
  size_t slash = config.server.eip.find('/');
  if (config.server.eip.empty()) return target.prefix;
  std::string path = slash == std::string::npos ? "" : config.server.eip.substr(slash);
  size_t sandboxes = target.prefix.find("/sandboxes/");
  return path + target.prefix.substr(std::min(sandboxes, target.prefix.size()));
}

}  // namespace osb::server
