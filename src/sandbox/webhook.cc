#include "sandbox/webhook.h"

#include <algorithm>

#include "base/strings.h"
#include "sandbox/egress_target.h"

namespace osb::sandbox {
namespace {

constexpr std::string_view kPlain = "http://", kSecure = "https://";
constexpr size_t kMostBytes = 2048;

bool is_host(std::string_view host) { return parse_ip(host) || normal_name(host); }

}  // namespace

Result<Webhook> parse_webhook(std::string_view url) {
  auto wrong = [] { return fail(Code::invalid_argument, "no http:// or https:// address of a host"); };
  bool plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
  bool tls = url.starts_with(kSecure);
  if (!plain || url.size() > kMostBytes || !(tls || url.starts_with(kPlain))) return wrong();
  std::string_view rest = url.substr((tls ? kSecure : kPlain).size());
  size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  Webhook hook{.port = static_cast<uint16_t>(tls ? 443 : 80), .tls = tls};
  hook.authority = rest.substr(0, slash);
  if (slash < rest.size()) hook.target = (rest[slash] == '?' ? "/" : "") + std::string(rest.substr(slash));
  std::string_view host = hook.authority;
  std::string_view port;
  if (host.starts_with('[')) {
    size_t end = host.find(']');
    if (end == host.npos) return wrong();
    port = host.substr(end + 1);
    host = host.substr(1, end - 1);
    if (!host.contains(':')) return wrong();
  } else if (size_t colon = host.find(':'); colon != host.npos) {
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  if (!is_host(host)) return wrong();
  if (!port.empty()) {
    auto number = port[0] == ':' ? parse_number<uint16_t>(port.substr(1)) : std::nullopt;
    if (!number || *number == 0) return wrong();
    hook.port = *number;
  }
  hook.host = host;
  return hook;
}

}  // namespace osb::sandbox
