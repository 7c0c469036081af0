#include "cli/dockerfile_words.h"

#include <boost/json/array.hpp>

#include "base/strings.h"
#include "cli/dockerfile.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

constexpr size_t kMostExpanded = 64 << 10;
constexpr int kDeepest = 16;  // ${A:-${B:-...}}

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

class Expander {
 public:
  Expander(std::string_view text, char escape, const Lookup& lookup)
      : text_(text), escape_(escape), lookup_(lookup) {}

  // Up to the end, or to a brace that is not of the word itself.
  Result<std::string> word(int depth, bool in_braces) {
    if (depth > kDeepest) return fail(Code::invalid_argument, "variables are nested too deeply");
    std::string out;
    char quote = 0;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (in_braces && !quote && c == '}') return out;
      ++at_;
      if (quote == '\'') {
        c == '\'' ? void(quote = 0) : out.push_back(c);
      } else if (c == '\'' && !quote) {
        quote = c;
      } else if (c == '"') {
        quote = quote ? 0 : c;
      } else if (c == escape_ && at_ < text_.size()) {
        // In double quotes only what means something there can be escaped.
        char next = text_[at_++];
        if (quote && next != '"' && next != '$' && next != escape_) out.push_back(c);
        out.push_back(next);
      } else if (c == '$') {
        out += TRY(variable(depth));
      } else {
        out.push_back(c);
      }
      if (out.size() > kMostExpanded) return fail(Code::too_large, "a value is longer than 64 KiB");
    }
    if (quote) return fail(Code::invalid_argument, "a quote does not end");
    if (in_braces) return fail(Code::invalid_argument, "a ${ does not end");
    return out;
  }

 private:
  std::string name() {
    size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  Result<std::string> variable(int depth) {
    if (at_ < text_.size() && text_[at_] == '{') {
      ++at_;
      return braced(depth);
    }
    if (at_ == text_.size() || !is_name_start(text_[at_])) return "$";
    return lookup_(name()).value_or("");
  }

  Result<std::string> braced(int depth) {
    std::string asked = name();
    if (asked.empty() || !is_name_start(asked[0]))
      return fail(Code::invalid_argument, "a ${ without the name of a variable");
    auto value = lookup_(asked);
    if (at_ < text_.size() && text_[at_] == '}') {
      ++at_;
      return value.value_or("");
    }
    std::string_view modifier = text_.substr(at_, 2);
    if (modifier != ":-" && modifier != ":+")
      return fail(Code::invalid_argument,
                  "${" + asked + "...}: only ${NAME}, ${NAME:-word} and ${NAME:+word} are supported");
    at_ += 2;
    std::string other = TRY(word(depth + 1, true));
    ++at_;  // the brace
    bool is_set = value && !value->empty();
    if (modifier == ":-") return is_set ? *value : other;
    return is_set ? other : std::string();
  }

  std::string_view text_;
  char escape_;
  const Lookup& lookup_;
  size_t at_ = 0;
};

}  // namespace

Result<std::string> expand(std::string_view word, char escape, const Lookup& lookup) {
  return Expander(word, escape, lookup).word(0, false);
}

std::optional<std::vector<std::string>> split_words(std::string_view text, char escape) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (!quote && is_blank(c)) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
      continue;
    }
    inside = true;
    word.push_back(c);
    if (c == escape && quote != '\'' && i + 1 < text.size()) {
      word.push_back(text[++i]);
    } else if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    }
  }
  if (quote) return std::nullopt;
  if (inside) words.push_back(std::move(word));
  return words;
}

std::optional<std::vector<std::string>> list_from(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('[')) return std::nullopt;
  auto value = json::parse(text);
  const auto* array = value ? value->if_array() : nullptr;
  if (!array) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& item : *array) {
    if (!item.is_string()) return std::nullopt;
    words.emplace_back(item.as_string());
  }
  return words;
}

bool has_heredoc(std::string_view text) {
  for (size_t at = 0; (at = text.find("<<", at)) != text.npos; at += 2) {
    // Behind a blank or a descriptor's number; a shift in $((1<<2)) and a <<< are none.
    size_t before = at;
    while (before > 0 && text[before - 1] >= '0' && text[before - 1] <= '9') --before;
    if (before > 0 && !is_blank(text[before - 1])) continue;
    std::string_view rest = text.substr(at + 2);
    if (rest.starts_with('-')) rest.remove_prefix(1);
    if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
    if (!rest.empty() && is_name_start(rest[0])) return true;
  }
  return false;
}

}  // namespace osb::cli
