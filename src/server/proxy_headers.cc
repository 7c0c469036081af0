#include "server/proxy_headers.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "http/reverse_proxy.h"
#include "server/page_headers.h"

namespace osb::server {
namespace {

// Host and the forwarding fields are made anew; the rest are secrets of the API or switches of this proxy.
constexpr std::array<std::string_view, 12> kNeverForwarded = {
    "Host",
    "Expect",  // answered here
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

// Of everything that has the origin of this server.
constexpr std::array<std::string_view, 2> kOfTheOrigin = {"Authorization", "Cookie"};

bool is_forwarded(std::string_view name, const ProxyTarget& target) {
  auto is_it = [&](std::string_view other) { return name.size() == other.size() && iequals(name, other); };
  if (!target.own_host && std::ranges::any_of(kOfTheOrigin, is_it)) return false;
  return std::ranges::none_of(kNeverForwarded, is_it);
}

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Alone, or as a word of its own: "Bearer <key>", "token=<key>", a path of the original request.
bool holds(std::string_view value, std::string_view secret) {
  if (secret.empty()) return false;
  for (size_t at = value.find(secret); at != value.npos; at = value.find(secret, at + 1)) {
    size_t end = at + secret.size();
    bool begins = at == 0 || !is_word_byte(value[at - 1]);
    if (begins && (end == value.size() || !is_word_byte(value[end]))) return true;
  }
  return false;
}

bool holds_secret(std::string_view value, const Secrets& secrets) {
  return holds(value, secrets.token) ||
         std::ranges::any_of(secrets.keys, [&](const Key& key) { return holds(value, key.key); });
}

// "https://host/t/<token>/..." -> "https://host/"; nothing when it is no such thing.
std::string origin_of(std::string_view referer) {
  size_t scheme = referer.find("://");
  if (scheme == referer.npos) return "";
  return std::string(referer.substr(0, referer.find_first_of("/?#", scheme + 3))) + "/";
}

// "?a=1&b=2" without the parameters that hold a secret, escaped or not; the rest as it came.
std::string query_without(std::string_view query, const Secrets& secrets) {
  bool plain = query.find_first_of("%+") == query.npos;
  if (plain && !holds_secret(query, secrets)) return std::string(query);
  std::string kept;
  for (std::string_view parameter : split(query.substr(1), '&')) {
    auto decoded = percent_decode(parameter, Plus::space);
    if (holds_secret(parameter, secrets) || (decoded && holds_secret(*decoded, secrets))) continue;
    kept.append(kept.empty() ? "?" : "&").append(parameter);
  }
  return kept;
}

}  // namespace

http::RequestHead upstream_head(const http::Request& request, const ProxyTarget& target,
                                const Secrets& secrets, TrustedProxies trusted) {
  http::RequestHead head;
  head.method = request.head.method;
  std::string_view path = request.rest;
  while (path.starts_with("//")) path.remove_prefix(1);
  head.target = path.empty() ? "/" : path;
  if (size_t mark = request.head.target.find('?'); mark != std::string::npos) {
    head.target.append(query_without(std::string_view(request.head.target).substr(mark), secrets));
  }
  head.headers.add("Host", target.own_host ? std::string(request.head.headers.get("Host"))
                                           : "127.0.0.1:" + std::to_string(target.port));
  const http::Headers& received = request.head.headers;
  head.headers.reserve(received.size() + 4);
  for (const auto& [name, value] : received) {
    // A client's Connection names fields of its own; those that are added here it must not.
    if (http::is_hop_by_hop(name) || !is_forwarded(name, target) ||
        http::is_named_by_connection(received, name))
      continue;
    bool cut = !secrets.keys.empty() && !target.own_host && iequals(name, "Referer");
    std::string shown = cut ? origin_of(value) : value;
    if ((cut && shown.empty()) || holds_secret(shown, secrets)) continue;
    head.headers.add(name, std::move(shown));
  }
  Forwarded from = forwarded(request, trusted);
  head.headers.add("X-Forwarded-Proto", std::move(from.protocol));
  if (!from.host.empty() && !holds_secret(from.host, secrets))
    head.headers.add("X-Forwarded-Host", std::move(from.host));
  if (!from.addresses.empty()) head.headers.add("X-Forwarded-For", std::move(from.addresses));
  return head;
}

void edit_upstream_response(http::ResponseHead& head, const Config& config, const ProxyTarget& target) {
  // Most answers name no place.
  bool plain = !head.headers.contains("Location") && !head.headers.contains("Set-Cookie");
  edit_upstream_response(head, plain ? "" : visible_prefix(config, target));
}

void edit_upstream_response(http::ResponseHead& head, std::string_view visible_prefix) {
  head.headers.remove("Server");
  head.headers.remove("X-Request-ID");  // ours is the one of this request
  // The address of the page may hold a token; what the page links to must not get it.
  if (!iequals(trim(head.headers.get("Referrer-Policy")), "no-referrer"))
    head.headers.set("Referrer-Policy", "origin");
  confine_proxied_answer(head.headers, visible_prefix);
  std::string_view location = head.headers.get("Location");
  if (location.starts_with('/') && !location.starts_with("//")) {
    head.headers.set("Location", std::string(visible_prefix) + std::string(location));
  }
}

void edit_preview_response(http::ResponseHead& head) {
  head.headers.remove("Server");
  head.headers.remove("X-Request-ID");  // ours is the one of this request
  std::string_view policy = trim(head.headers.get("Referrer-Policy"));
  if (!iequals(policy, "no-referrer") && !iequals(policy, "same-origin"))
    head.headers.set("Referrer-Policy", "same-origin");
  confine_preview_answer(head.headers);
}

std::string visible_prefix(const Config& config, const ProxyTarget& target) {
  size_t slash = config.server.eip.find('/');
  if (config.server.eip.empty()) return std::string(target.prefix);
  std::string path = slash == std::string::npos ? "" : config.server.eip.substr(slash);
  // Endpoints with an eip have no mount of ours in them (routes_endpoint.cc).
  return path.append(target.prefix.substr(target.prefix.starts_with("/v1/") ? 3 : 0));
}

}  // namespace osb::server
