#pragma once

// Texts of hexadecimal digits, lower case, as we write them.

#include <string_view>

namespace osb {

constexpr bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A SHA-256 digest.
constexpr bool is_hex_digest(std::string_view text) { return text.size() == 64 && is_hex(text); }

}  // namespace osb
