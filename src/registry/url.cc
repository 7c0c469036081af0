#include "registry/url.h"

#include <algorithm>

#include "base/strings.h"
#include "http/head_parse.h"
#include "image/pull_reference.h"

namespace osb::registry {
namespace {

constexpr size_t kMaxUrl = 8 * 1024;  // signed addresses of object stores are long

std::unexpected<Error> refuse(std::string_view why) {
  return fail(Code::corrupt, "an address that cannot be used: " + std::string(why));
}

Result<std::string> checked_target(std::string_view text) {
  if (text.find('#') != text.npos) text = text.substr(0, text.find('#'));
  std::string target = text.starts_with('/') ? std::string(text) : "/" + std::string(text);
  if (!http::is_request_target(target)) return refuse("its path has characters that do not belong there");
  return target;
}

}  // namespace

std::string Url::named() const { return host.find(':') == host.npos ? host : "[" + host + "]"; }

std::string Url::authority() const {
  bool usual = port == (tls ? 443 : 80);
  return usual ? named() : named() + ":" + std::to_string(port);
}

std::string Url::origin() const { return (tls ? "https://" : "http://") + authority(); }

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) return refuse("it is longer than 8 KiB");
  Url url;
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
    url.tls = false;
  } else {
    return refuse("it begins with neither https:// nor http://");
  }
  size_t end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, end);
  if (!image::is_registry_host(authority)) return refuse("its host is neither a name nor an address");
  size_t bracket = authority.starts_with('[') ? authority.find(']') : 0, colon = authority.find(':', bracket);
  url.host = to_lower(bracket > 0 ? authority.substr(1, bracket - 1) : authority.substr(0, colon));
  url.port = url.tls ? 443 : 80;
  if (colon != authority.npos) url.port = *parse_number<uint16_t>(authority.substr(colon + 1));
  url.target = TRY(checked_target(text.substr(end)));
  return url;
}

Result<Url> resolve(const Url& base, std::string_view location) {
  if (location.size() > kMaxUrl) return refuse("it is longer than 8 KiB");
  if (!location.starts_with('/')) return parse_url(location);
  if (location.starts_with("//")) return refuse("it has a host without a scheme");
  Url url = base;
  url.target = TRY(checked_target(location));
  return url;
}

}  // namespace osb::registry
