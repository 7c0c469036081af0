#include "registry/login.h"

#include <boost/json.hpp>

#include "base/strings.h"
#include "json/decode.h"

namespace osb::registry {
namespace {

Result<std::string> decode_base64(std::string_view text) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (char c : text) {
    size_t value = kAlphabet.find(c);
    if (value == kAlphabet.npos) return fail(Code::corrupt, "not base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> have & 0xff));
  }
  return out;
}

// "https://index.docker.io/v1/" -> "docker.io".
std::string host_of(std::string_view key) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  std::string host = to_lower(key.substr(0, key.find('/')));
  return host == "index.docker.io" || host == "registry-1.docker.io" ? "docker.io" : host;
}

}  // namespace

Result<std::map<std::string, Login>> parse_login_file(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto entries = json::Field::root(value, issues, "file")["auths"].object();
  std::map<std::string, Login> out;
  if (!issues.empty()) return fail(Code::corrupt, "it is no file of `docker login`");
  if (!entries) return out;
  for (const auto& [key, entry] : *entries) {
    Login login{entry["username"].string().value_or(""), entry["password"].string().value_or("")};
    if (auto both = entry["auth"].string(); both && !both->empty()) {
      std::string decoded = TRY(in_context("the entry of " + host_of(key), decode_base64(*both)));
      size_t colon = decoded.find(':');
      if (colon == decoded.npos)
        return fail(Code::corrupt, "the entry of " + host_of(key) + " has no password");
      login = {decoded.substr(0, colon), decoded.substr(colon + 1)};
      while (login.password.ends_with('\0')) login.password.pop_back();
    }
    if (!login.username.empty()) out.insert_or_assign(host_of(key), std::move(login));
  }
  if (!issues.empty()) return fail(Code::corrupt, "it is no file of `docker login`");
  return out;
}

}  // namespace osb::registry
