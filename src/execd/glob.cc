#include "execd/glob.h"

#include <vector>

#include "base/utf8.h"

namespace osb::execd {
namespace {

constexpr int kMaxSteps = 200'000;
constexpr int kMaxNesting = 32;

// The code point at the front; a byte that is no UTF-8 counts as one.
uint32_t take_code_point(std::string_view& text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  unsigned char lead = bytes[0];
  size_t length = lead < 0x80 ? 1 : utf8_sequence(bytes, text.size());
  if (length == 0) {
    text.remove_prefix(1);
    return 0x110000u + lead;  // outside Unicode: equal only to the same stray byte
  }
  uint32_t point = length == 1 ? lead : lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) point = (point << 6) | (bytes[i] & 0x3F);
  text.remove_prefix(length);
  return point;
}

// The position of the bracket that closes the one at `open`, or npos. Classes and escapes hide brackets.
size_t find_close(std::string_view pattern, size_t open, char close) {
  char opening = pattern[open];
  int depth = 0;
  bool in_class = false;
  for (size_t i = open; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == opening) {
      ++depth;
    } else if (c == close && --depth == 0) {
      return i;
    }
  }
  return pattern.npos;
}

std::vector<std::string_view> split_alternatives(std::string_view body) {
  std::vector<std::string_view> out;
  size_t start = 0;
  int depth = 0;
  bool in_class = false;
  for (size_t i = 0; i < body.size(); ++i) {
    char c = body[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.push_back(body.substr(start, i - start));
      start = i + 1;
    }
  }
  out.push_back(body.substr(start));
  return out;
}

// `pattern` begins behind '['; both views are advanced. The pattern is known to be well formed.
bool match_class(std::string_view& pattern, uint32_t point) {
  bool negated = pattern.starts_with('!') || pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  auto take = [&] {
    if (pattern.starts_with('\\')) pattern.remove_prefix(1);
    return take_code_point(pattern);
  };
  bool found = false;
  while (pattern[0] != ']') {
    uint32_t low = take(), high = low;
    if (pattern.size() > 1 && pattern[0] == '-' && pattern[1] != ']') {
      pattern.remove_prefix(1);
      high = take();
    }
    found = found || (low <= point && point <= high);
  }
  pattern.remove_prefix(1);
  return found != negated;
}

class Matcher {
 public:
  bool match(std::string_view pattern, std::string_view name, bool at_start) {
    while (true) {
      if (++steps_ > kMaxSteps) return false;
      if (pattern.empty()) return name.empty();
      if (at_start && pattern.starts_with("**/")) {
        pattern.remove_prefix(3);
        continue;
      }
      switch (pattern[0]) {
        case '{':
          return match_alternatives(pattern, name, at_start);
        case '!':
          return match_negation(pattern, name, at_start);
        case '*':
          return match_run(pattern, name);
      }
      if (name.empty()) return false;
      if (!match_one(pattern, name)) return false;
      at_start = false;
    }
  }

 private:
  bool match_one(std::string_view& pattern, std::string_view& name) {
    uint32_t point = take_code_point(name);
    if (pattern[0] == '?') {
      pattern.remove_prefix(1);
      return true;
    }
    if (pattern[0] == '[') {
      pattern.remove_prefix(1);
      return match_class(pattern, point);
    }
    if (pattern[0] == '\\') pattern.remove_prefix(1);
    return take_code_point(pattern) == point;
  }

  bool match_alternatives(std::string_view pattern, std::string_view name, bool at_start) {
    size_t close = find_close(pattern, 0, '}');
    std::string_view rest = pattern.substr(close + 1);
    for (std::string_view alternative : split_alternatives(pattern.substr(1, close - 1))) {
      if (match(std::string(alternative).append(rest), name, at_start)) return true;
    }
    return false;
  }

  bool match_negation(std::string_view pattern, std::string_view name, bool at_start) {
    if (name.empty()) return false;
    size_t close = find_close(pattern, 1, ')');
    std::string inner(pattern.substr(2, close - 2));
    bool matched = match(inner.append(pattern.substr(close + 1)), name, at_start);
    return steps_ <= kMaxSteps && !matched;
  }

  bool match_run(std::string_view pattern, std::string_view name) {
    pattern.remove_prefix(std::min(pattern.find_first_not_of('*'), pattern.size()));
    if (pattern.empty()) return true;
    while (true) {
      if (match(pattern, name, false)) return true;
      if (name.empty() || steps_ > kMaxSteps) return false;
      take_code_point(name);
    }
  }

  int steps_ = 0;
};

Result<void> check_class(std::string_view pattern, size_t& i) {
  size_t at = i + 1;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  size_t first = at;
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    if (pattern[at] == '\\' && ++at == pattern.size()) break;
  }
  if (at >= pattern.size()) return fail(Code::invalid_argument, "'[' is not closed");
  if (at == first) return fail(Code::invalid_argument, "a character class is empty");
  i = at;
  return {};
}

Result<void> check(std::string_view pattern) {
  std::string open;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\' && ++i == pattern.size())
      return fail(Code::invalid_argument, "a backslash ends the pattern");
    if (c == '[') TRY(check_class(pattern, i));
    if (c == '{') open.push_back('}');
    if (c == '!') {
      if (pattern.substr(i + 1, 1) != "(")
        return fail(Code::invalid_argument, "'!' is not followed by a group in parentheses");
      open.push_back(')');
      ++i;
    }
    if (open.size() > kMaxNesting) return fail(Code::invalid_argument, "groups are nested too deeply");
    if (c == '}' || (c == ')' && !open.empty() && open.back() == ')')) {
      if (open.empty() || open.back() != c)
        return fail(Code::invalid_argument, std::string("unbalanced '") + c + "'");
      open.pop_back();
    }
  }
  if (!open.empty()) return fail(Code::invalid_argument, std::string("'") + open.back() + "' is missing");
  return {};
}

}  // namespace

Result<Glob> Glob::parse(std::string pattern) {
  TRY(in_context("pattern '" + pattern + "'", check(pattern)));
  return Glob(std::move(pattern));
}

bool Glob::matches(std::string_view name) const { return Matcher().match(pattern_, name, true); }

}  // namespace osb::execd
