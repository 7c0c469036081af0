#include "base/strings.h"

namespace osb {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string to_lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = lower(c);
  return out;
}

bool iequals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trim(std::string_view s) {
  static constexpr std::string_view kBlank = " \t\r\n";
  size_t from = s.find_first_not_of(kBlank);
  if (from == s.npos) return {};
  return s.substr(from, s.find_last_not_of(kBlank) - from + 1);
}

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    size_t at = s.find(separator);
    out.push_back(s.substr(0, at));
    if (at == s.npos) return out;
    s.remove_prefix(at + 1);
  }
}

bool constant_time_equals(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    unsigned char other = b.empty() ? 0 : static_cast<unsigned char>(b[i % b.size()]);
    difference |= static_cast<unsigned char>(a[i]) ^ other;
  }
  return difference == 0;
}

std::optional<std::string> percent_decode(std::string_view s, Plus plus) {
  // Most texts are what they mean.
  bool plain = s.find('%') == s.npos && (plus == Plus::literal || s.find('+') == s.npos);
  if (plain) return s.find('\0') == s.npos ? std::optional<std::string>(s) : std::nullopt;
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    if (c == '+' && plus == Plus::space) c = ' ';
    if (s[i] == '%') {
      if (i + 2 >= s.size()) return std::nullopt;
      int high = hex_value(s[i + 1]), low = hex_value(s[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    out.push_back(c);
  }
  return out;
}

std::string percent_encode(std::string_view s) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : s) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                 c == '_' || c == '.' || c == '~';
    if (plain) {
      out.push_back(static_cast<char>(c));
    } else {
      out.push_back('%');
      out.push_back(kDigits[c >> 4]);
      out.push_back(kDigits[c & 15]);
    }
  }
  return out;
}

}  // namespace osb
