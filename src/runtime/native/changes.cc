#include "runtime/native/changes.h"

#include <optional>

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

}  // namespace

Result<std::vector<sandbox::FileChange>> parse_changes(std::string_view text) {
  std::vector<sandbox::FileChange> changes;
  while (!text.empty()) {
    size_t end = text.find('\n');
    auto odd = [] { return fail(Code::corrupt, "the launcher's list of changes makes no sense"); };
    if (end == text.npos || end < 3 || text[1] != ' ' || text[2] != '/') return odd();
    auto kind = kind_of(text[0]);
    auto path = unescape(text.substr(2, end - 2));
    if (!kind || !path) return odd();
    changes.push_back({*kind, std::move(*path)});
    text.remove_prefix(end + 1);
  }
  return changes;
}

}  // namespace osb::runtime
