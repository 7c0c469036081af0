#pragma once

// Small string functions that the standard library lacks. ASCII only where case matters.

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb {

std::string to_lower(std::string_view s);
bool iequals(std::string_view a, std::string_view b);
std::string_view trim(std::string_view s);                                // blanks, tabs, CR, LF
std::vector<std::string_view> split(std::string_view s, char separator);  // keeps empty pieces
// Takes time that depends on the lengths only.
bool constant_time_equals(std::string_view a, std::string_view b);

// %XX (and '+' as a space when asked). Nothing when an escape is broken or yields a NUL byte.
enum class Plus { literal, space };
std::optional<std::string> percent_decode(std::string_view s, Plus plus);
std::string percent_encode(std::string_view s);  // everything but unreserved characters

// The whole text as a number; nothing for blanks, signs on unsigned types, overflow, or trailing characters.
template <class T>
std::optional<T> parse_number(std::string_view s) {
  T value{};
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size() || s.empty()) return std::nullopt;
  return value;
}

}  // namespace osb
