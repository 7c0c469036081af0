#include "server/endpoint_token.h"

#include <algorithm>
#include <charconv>

#include "base/fd.h"
#include "base/strings.h"
#include "runtime/runtime.h"

namespace osb::server {
namespace {

constexpr size_t kTokenBytes = 18;  // a multiple of three: no padding, no unused bits
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string url_safe(const Sha256Digest& digest) {
  std::string out;
  for (size_t i = 0; i < kTokenBytes; i += 3) {
    uint32_t group = uint32_t{digest[i]} << 16 | uint32_t{digest[i + 1]} << 8 | digest[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) out.push_back(kAlphabet[group >> shift & 63]);
  }
  return out;
}

std::string base36(uint64_t number) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]);
  } while ((number /= 36) != 0);
  return digits;
}

std::optional<uint64_t> parse_base36(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 36);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Cuts the first segment off a path that starts with a slash.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  size_t end = std::min(path.find('/'), path.size());
  std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

// Whether somebody behind us may read ".." in it, however it is written; also when it cannot be read at all.
bool may_climb(std::string_view raw_path) {
  if (raw_path.find('%') == raw_path.npos)
    return raw_path.find("..") != raw_path.npos || raw_path.find('\0') != raw_path.npos;
  auto decoded = percent_decode(raw_path, Plus::literal);
  return !decoded || decoded->find("..") != std::string::npos;
}

bool is_plain(std::string_view segment) {
  return !segment.empty() && segment != "." && segment.find('%') == segment.npos;
}

}  // namespace

Result<EndpointTokens> EndpointTokens::open(const std::string& path) {
  std::string secret = TRY(read_file(path));
  if (secret.size() != kSecretBytes) {
    return fail(Code::corrupt, path +
                                   ": not a secret of this service; remove it and start opensandbox-server "
                                   "again, which makes endpoints that were handed out before invalid");
  }
  return EndpointTokens(std::move(secret));
}

std::string EndpointTokens::token(std::string_view id, uint16_t port) const {
  // The port is a number, so the first blank ends it: no two pairs make the same text.
  std::string what = "endpoint " + std::to_string(port) + " ";
  return url_safe(hmac_sha256(secret_, what.append(id)));
}

std::string EndpointTokens::egress_token(std::string_view id) const {
  return url_safe(hmac_sha256(secret_, "egress " + std::string(id)));
}

bool EndpointTokens::opens(std::string_view given, std::string_view id, uint16_t port) const {
  bool all = constant_time_equals(given, token(id, runtime::kExecdPort));
  if (port == runtime::kExecdPort) return all;
  bool own = constant_time_equals(given, token(id, port));
  return own | all;
}

std::string EndpointTokens::access_token(std::string_view id) const {
  return url_safe(keyed_hash("access " + std::string(id)));
}

std::string EndpointTokens::sign(std::string_view id, uint16_t port, uint64_t expires) const {
  std::string until = base36(expires);
  return until + "/" + signature(id, port, until);
}

std::string EndpointTokens::signature(std::string_view id, uint16_t port, std::string_view expires) const {
  // Neither of the first two has a blank in it.
  std::string what = "signed " + std::string(expires) + " " + std::to_string(port) + " ";
  return url_safe(keyed_hash(what.append(id)));
}

Signature EndpointTokens::check(const ProxyPath& path, WallTime now) const {
  if (path.signature.empty()) return Signature::none;
  auto port = parse_number<uint16_t>(path.port);
  auto expires = parse_base36(path.expires);
  if (!port || !expires) return Signature::wrong;
  if (!constant_time_equals(path.signature, signature(path.id, *port, path.expires))) return Signature::wrong;
  auto second = std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  return static_cast<uint64_t>(second) <= *expires ? Signature::valid : Signature::expired;
}

Sha256Digest EndpointTokens::keyed_hash(std::string_view what) const { return hmac_sha256(secret_, what); }

std::optional<ProxyPath> parse_proxy_path(std::string_view raw_path) {
  std::string_view path = raw_path;
  ProxyPath found;
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (path.starts_with("/t/")) {
    path.remove_prefix(2);
    found.token = take_segment(path);
    if (!is_plain(found.token)) return std::nullopt;
  } else if (path.starts_with("/s/")) {
    path.remove_prefix(2);
    found.expires = take_segment(path);
    found.signature = take_segment(path);
    if (!is_plain(found.expires) || !is_plain(found.signature)) return std::nullopt;
  }
  if (!path.starts_with("/sandboxes/")) return std::nullopt;
  path.remove_prefix(10);
  found.id = take_segment(path);
  if (!is_plain(found.id) || !path.starts_with("/proxy/")) return std::nullopt;
  path.remove_prefix(6);
  found.port = take_segment(path);
  if (found.port.empty() || found.port.find_first_not_of("0123456789") != found.port.npos)
    return std::nullopt;
  return may_climb(raw_path) ? std::nullopt : std::optional(found);
}

std::string without_token(std::string_view raw_path) {
  std::string_view mount = raw_path.starts_with("/v1/") ? "/v1" : "";
  std::string_view rest = raw_path.substr(mount.size());
  bool is_signed = rest.starts_with("/s/");
  if (!is_signed && !rest.starts_with("/t/")) return std::string(raw_path);
  rest.remove_prefix(2);
  std::string shown = std::string(mount) + (is_signed ? "/s/" : "/t/");
  if (is_signed) shown.append(take_segment(rest)).append("/");
  take_segment(rest);
  return shown.append("-").append(rest);
}

}  // namespace osb::server
