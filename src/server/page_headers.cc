#include "server/page_headers.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace osb::server {
namespace {

// What a browser keeps for the whole origin, or the whole host.
constexpr std::array<std::string_view, 17> kOriginWide = {
    "Service-Worker-Allowed",     // a worker for more than the path of its script
    "Clear-Site-Data",            // cookies, storage and cache of everybody
    "Strict-Transport-Security",  // the host cannot be reached over HTTP any more
    "Public-Key-Pins",
    "Public-Key-Pins-Report-Only",
    "Expect-CT",
    "Alt-Svc",  // other requests go to a server of the sandbox's choice
    "NEL",      // reports about other requests
    "Report-To",
    "Origin-Agent-Cluster",
    "Accept-CH",  // further request fields for everybody
    "Critical-CH",
    "Set-Login",
    "Use-As-Dictionary",         // decides how other answers are decoded
    "Sec-Session-Registration",  // sessions that the browser renews by itself
    "Secure-Session-Registration",
    "Activate-Storage-Access",
};

bool is_origin_wide(std::string_view name) {
  return std::ranges::any_of(kOriginWide, [&](std::string_view other) {
    return name.size() == other.size() && iequals(name, other);
  });
}

// The cookie without these attributes.
std::string cookie_without(std::string_view cookie, std::initializer_list<std::string_view> attributes) {
  std::string out;
  for (std::string_view part : split(cookie, ';')) {
    std::string_view name = trim(part.substr(0, part.find('=')));
    bool left_out =
        std::ranges::any_of(attributes, [&](std::string_view other) { return iequals(name, other); });
    if (!out.empty() && left_out) continue;
    out.append(out.empty() ? "" : ";").append(part);
  }
  return out;
}

// Sent back to paths of ours alone.
std::string scoped_cookie(std::string_view cookie, std::string_view prefix) {
  return cookie_without(cookie, {"Path", "Domain"}).append("; Path=").append(prefix).append("/");
}

}  // namespace

void protect_api_answer(http::ResponseWriter& response) {
  response.always("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'");
  response.always("X-Content-Type-Options", "nosniff");
  response.always("Cross-Origin-Resource-Policy", "same-origin");
}

void confine_proxied_answer(http::Headers& headers, std::string_view visible_prefix) {
  bool as_it_is = std::ranges::none_of(headers, [](const http::HeaderField& field) {
    return is_origin_wide(field.name) || iequals(field.name, "Set-Cookie");
  });
  if (as_it_is) return;
  http::Headers kept;
  for (const auto& [name, value] : headers) {
    if (is_origin_wide(name)) continue;
    kept.add(name, iequals(name, "Set-Cookie") ? scoped_cookie(value, visible_prefix) : value);
  }
  headers = std::move(kept);
}

void confine_preview_answer(http::Headers& headers) {
  headers.remove("Clear-Site-Data");  // reaches cookies of the other previews
  http::Headers kept;
  for (const auto& [name, value] : headers)
    kept.add(name, iequals(name, "Set-Cookie") ? cookie_without(value, {"Domain"}) : value);
  headers = std::move(kept);
}

}  // namespace osb::server
