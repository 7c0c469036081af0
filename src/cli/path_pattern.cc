#include "cli/path_pattern.h"

#include <algorithm>

#include "base/strings.h"

namespace osb::cli {
namespace {

constexpr size_t kMostLines = 1000;
constexpr size_t kMostNames = 64;

// A class such as [a-z] at `at`: whether `c` is in it, and where it ends; an end of 0 when it has none.
struct Class {
  bool holds = false;
  size_t end = 0;
};
Class match_class(std::string_view pattern, size_t at, char c) {
  size_t i = at + 1;
  bool negated = i < pattern.size() && (pattern[i] == '^' || pattern[i] == '!');
  if (negated) ++i;
  bool found = false;
  for (size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    char low = pattern[i];
    if (low == '\\' && i + 1 < pattern.size()) low = pattern[++i];
    char high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = pattern[i + 2];
      i += 2;
    }
    auto value = static_cast<unsigned char>(c);
    if (static_cast<unsigned char>(low) <= value && value <= static_cast<unsigned char>(high)) found = true;
  }
  if (i >= pattern.size()) return {};
  return {found != negated, i + 1};
}

// Whether one character of the pattern takes `c`, and what follows it.
size_t match_one(std::string_view pattern, size_t at, char c) {
  if (pattern[at] == '?') return at + 1;
  if (pattern[at] == '[') {
    Class one = match_class(pattern, at, c);
    if (one.end != 0) return one.holds ? one.end : 0;
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return pattern[at] == c ? at + 1 : 0;
}

using Names = std::vector<std::string_view>;

// Whether the pattern takes all of the names. Each pair of places is looked at once.
bool matches_names(const std::vector<std::string>& pattern, const Names& names, size_t count) {
  std::vector<bool> reached(count + 1, false), next;
  reached[0] = true;
  for (const std::string& one : pattern) {
    next.assign(count + 1, false);
    for (size_t i = 0; i <= count; ++i) {
      if (!reached[i]) continue;
      if (one == "**") {
        std::fill(next.begin() + static_cast<std::ptrdiff_t>(i), next.end(), true);
        break;
      }
      if (i < count && matches_name(one, names[i])) next[i + 1] = true;
    }
    reached.swap(next);
  }
  return reached[count];
}

}  // namespace

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?[\\") != pattern.npos; }

bool matches_name(std::string_view pattern, std::string_view name) {
  // Greedy with one point to come back to: the last star is the only one worth trying again.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    size_t after = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    if (p < pattern.size()) after = match_one(pattern, p, name[n]);
    if (after != 0) {
      p = after;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string clean_path(std::string_view path) {
  std::vector<std::string_view> names;
  for (std::string_view name : split(path, '/')) {
    if (name.empty() || name == ".") continue;
    if (name != "..")
      names.push_back(name);
    else if (!names.empty())
      names.pop_back();
  }
  std::string out;
  for (std::string_view name : names) out.append(out.empty() ? "" : "/").append(name);
  return out;
}

Result<IgnoreList> IgnoreList::parse(std::string_view text) {
  IgnoreList list;
  if (text.size() > kMaxIgnoreFile) return fail(Code::too_large, ".dockerignore is larger than 64 KiB");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with('#')) continue;
    line = trim(line);
    Line one;
    if (line.starts_with('!')) {
      one.is_exception = true;
      line = trim(line.substr(1));
    }
    std::string clean = clean_path(line);
    if (clean.empty()) continue;
    for (std::string_view name : split(clean, '/')) one.names.emplace_back(name);
    if (one.names.size() > kMostNames || list.lines_.size() >= kMostLines)
      return fail(Code::too_large,
                  ".dockerignore has more than 1,000 lines, or a line of more than 64 names");
    list.has_exceptions_ |= one.is_exception;
    list.lines_.push_back(std::move(one));
  }
  return list;
}

bool IgnoreList::ignores(std::string_view path) const {
  Names names = split(path, '/');
  bool ignored = false;
  for (const Line& line : lines_) {
    if (line.is_exception != ignored) continue;  // it would change nothing
    for (size_t count = 1; count <= names.size(); ++count) {
      if (!matches_names(line.names, names, count)) continue;
      ignored = !line.is_exception;
      break;
    }
  }
  return ignored;
}

}  // namespace osb::cli
