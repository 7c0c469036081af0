#include "server/forwarded.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/strings.h"

namespace osb::server {
namespace {

// A chain that is longer was not made by proxies of one operator.
constexpr size_t kMostAddresses = 16;
constexpr size_t kMostHost = 255 + 6;  // a name and a port

bool is_trusted(TrustedProxies trusted, std::string_view address) {
  if (trusted.empty()) return false;
  auto parsed = sandbox::parse_ip(address);
  return parsed && std::ranges::any_of(trusted, [&](const auto& prefix) { return prefix.contains(*parsed); });
}

// The one field of that name; nothing when there are several, of which nobody knows who wrote which.
const std::string* only(const http::Headers& headers, std::string_view name) {
  const std::string* found = nullptr;
  for (const auto& [field, value] : headers) {
    if (!iequals(field, name)) continue;
    if (found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kMostHost && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
  });
}

// Each proxy adds the address of whoever is connected to it, on the right. Read from there: what a trusted
// one has added is so, and what an untrusted address claims is not.
std::string believed_addresses(const http::Request& request, TrustedProxies trusted) {
  std::string chain = request.peer;
  size_t taken = 0;
  const auto& headers = request.head.headers;
  std::vector<std::string_view> fields;
  for (const auto& [name, value] : headers) {
    if (iequals(name, "X-Forwarded-For")) fields.push_back(value);
  }
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    std::string_view left = *field;
    while (true) {
      size_t comma = left.rfind(',');
      std::string_view word = trim(comma == left.npos ? left : left.substr(comma + 1));
      auto address = sandbox::parse_ip(word);
      if (!address || ++taken > kMostAddresses) return chain;
      chain = sandbox::to_string(*address) + ", " + chain;
      if (!is_trusted(trusted, word)) return chain;
      if (comma == left.npos) break;
      left = left.substr(0, comma);
    }
  }
  return chain;
}

}  // namespace

std::string forwarded_host(const http::Request& request, TrustedProxies trusted) {
  const http::Headers& headers = request.head.headers;
  if (is_trusted(trusted, request.peer)) {
    const std::string* said = only(headers, "X-Forwarded-Host");
    if (said != nullptr && is_host(trim(*said))) return std::string(trim(*said));
  }
  return std::string(headers.get("Host"));
}

Forwarded forwarded(const http::Request& request, TrustedProxies trusted) {
  Forwarded out{.addresses = request.peer, .host = forwarded_host(request, trusted)};
  if (!is_trusted(trusted, request.peer)) return out;
  out.addresses = believed_addresses(request, trusted);
  const std::string* protocol = only(request.head.headers, "X-Forwarded-Proto");
  if (protocol != nullptr && iequals(trim(*protocol), "https")) out.protocol = "https";
  return out;
}

}  // namespace osb::server
