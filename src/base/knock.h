#pragma once

// How two who share a secret recognise each other at the beginning of a connection that anybody may open,
// without the secret on the wire:
//
//   execd to server   <challenge>                       32 hexadecimal digits, new for each connection
//   server to execd   <kind><port><own challenge><mac>  one letter, five digits, 32 and 64 hexadecimal digits
//   execd to server   <y or n><mac>                     whether the connection is what was asked for
//
// A mac is an HMAC-SHA256 over everything that was said so far, and over who says it, so that none can be
// used again or sent back. Pure functions over texts of fixed length.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace osb::knock {

inline constexpr size_t kChallenge = 32;
inline constexpr size_t kRequest = 1 + 5 + kChallenge + 64;
inline constexpr size_t kAnswer = 1 + 64;
inline constexpr size_t kSecret = 64;

enum class Kind : char { api = 'a', control = 'c', port = 'p' };

std::string new_challenge();
std::string new_secret();
bool is_secret(std::string_view text);
bool is_challenge(std::string_view text);

struct Wish {
  Kind kind = Kind::api;
  uint16_t port = 0;  // Kind::port
  bool operator==(const Wish&) const = default;
};

// `challenge` is execd's.
std::string ask(std::string_view secret, std::string_view challenge, Wish wish);
// Nothing for whoever does not have the secret.
std::optional<Wish> read_request(std::string_view secret, std::string_view challenge,
                                 std::string_view request);
std::string answer(std::string_view secret, std::string_view challenge, std::string_view request, bool open);
// What execd said to the request; nothing: it was not execd who did.
std::optional<bool> read_answer(std::string_view secret, std::string_view challenge, std::string_view request,
                                std::string_view answer);

}  // namespace osb::knock
