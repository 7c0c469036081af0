#include "base/knock.h"

#include <algorithm>

#include "base/ids.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace osb::knock {
namespace {

constexpr size_t kPortDigits = 5;
constexpr size_t kMac = 64;

// Every part has one length, so none can be taken for a piece of another.
std::string mac(std::string_view secret, std::string_view who, std::string_view challenge,
                std::string_view said) {
  return to_hex(hmac_sha256(secret, std::string(who).append(challenge).append(said)));
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<Wish> read_wish(std::string_view text) {
  std::string_view digits = text.substr(1, kPortDigits);
  bool plain = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  auto port = plain ? parse_number<uint16_t>(digits) : std::nullopt;
  if (!port) return std::nullopt;
  Kind kind = static_cast<Kind>(text[0]);
  switch (kind) {
    case Kind::api:
    case Kind::control:
      return *port == 0 ? std::optional(Wish{kind, 0}) : std::nullopt;
    case Kind::port:
      return *port != 0 ? std::optional(Wish{kind, *port}) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string new_challenge() { return new_hex_id(); }
std::string new_secret() { return new_hex_id() + new_hex_id(); }
bool is_secret(std::string_view text) { return text.size() == kSecret && is_hex(text); }
bool is_challenge(std::string_view text) { return text.size() == kChallenge && is_hex(text); }

std::string ask(std::string_view secret, std::string_view challenge, Wish wish) {
  std::string port = std::to_string(wish.port);
  std::string said(1, static_cast<char>(wish.kind));
  said.append(kPortDigits - port.size(), '0').append(port).append(new_challenge());
  return said + mac(secret, "server", challenge, said);
}

std::optional<Wish> read_request(std::string_view secret, std::string_view challenge,
                                 std::string_view request) {
  if (!is_secret(secret) || challenge.size() != kChallenge || request.size() != kRequest) return std::nullopt;
  std::string_view said = request.substr(0, kRequest - kMac);
  if (!constant_time_equals(request.substr(said.size()), mac(secret, "server", challenge, said)))
    return std::nullopt;
  return read_wish(said);
}

std::string answer(std::string_view secret, std::string_view challenge, std::string_view request, bool open) {
  std::string said(1, open ? 'y' : 'n');
  return said + mac(secret, "execd", challenge, std::string(request) + said);
}

std::optional<bool> read_answer(std::string_view secret, std::string_view challenge, std::string_view request,
                                std::string_view text) {
  if (text.size() != kAnswer || (text[0] != 'y' && text[0] != 'n')) return std::nullopt;
  bool open = text[0] == 'y';
  if (!constant_time_equals(text, answer(secret, challenge, request, open))) return std::nullopt;
  return open;
}

}  // namespace osb::knock
