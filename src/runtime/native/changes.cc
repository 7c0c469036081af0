#include "runtime/native/changes.h"

#include <optional>

#include "base/strings.h"

namespace osb::runtime {
namespace {

using Kind = sandbox::FileChange::Kind;

std::optional<Kind> kind_of(char letter) {
  switch (letter) {
    case 'A':
      return Kind::added;
    case 'M':
      return Kind::modified;
    case 'D':
      return Kind::deleted;
    default:
      return std::nullopt;
  }
}

// \\ooo is a byte.
std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 4) return std::nullopt;
    int value = 0;
    for (char digit : text.substr(i + 1, 3)) {
      if (digit < '0' || digit > '7') return std::nullopt;
      value = value * 8 + (digit - '0');
    }
    if (value == 0 || value > 255) return std::nullopt;
    out.push_back(static_cast<char>(value));
    i += 3;
  }
  return out;
}

std::unexpected<Error> odd() { return fail(Code::corrupt, "the launcher's list of changes makes no sense"); }

// "! 3 message", without its end.
std::unexpected<Error> read_error(std::string_view line) {
  auto words = line.substr(2);
  size_t blank = words.find(' ');
  auto code = blank == words.npos ? std::nullopt : parse_number<uint8_t>(words.substr(0, blank));
  auto message = blank == words.npos ? std::nullopt : unescape(words.substr(blank + 1));
  if (!code || !message || *code > static_cast<uint8_t>(Code::internal)) return odd();
  return fail(static_cast<Code>(*code), std::move(*message));
}

}  // namespace

Result<std::vector<sandbox::FileChange>> parse_changes(std::string_view text) {
  std::vector<sandbox::FileChange> changes;
  while (true) {
    size_t end = text.find('\n');
    if (text == ".\n") return changes;
    if (text.starts_with("! ") && end == text.size() - 1) return read_error(text.substr(0, end));
    if (end == text.npos || end < 3 || text[1] != ' ' || text[2] != '/') return odd();
    auto kind = kind_of(text[0]);
    auto path = unescape(text.substr(2, end - 2));
    if (!kind || !path) return odd();
    changes.push_back({*kind, std::move(*path)});
    text.remove_prefix(end + 1);
  }
}

}  // namespace osb::runtime
