#include "base/shell_words.h"

#include <utility>

namespace osb {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
// What a backslash protects between double quotes; before anything else it stands for itself.
constexpr std::string_view kEscapedInQuotes = "\"\\$`\n";

}  // namespace

Result<std::vector<std::string>> shell_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;  // '' is a word, too
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '\\' && quote != '\'') {
      if (i + 1 == line.size())
        return fail(Code::invalid_argument, "a backslash at the end protects nothing");
      char next = line[++i];
      if (quote == '"' && kEscapedInQuotes.find(next) == kEscapedInQuotes.npos) word.push_back(c);
      word.push_back(next);
      in_word = true;
    } else if (quote ? c == quote : (c == '"' || c == '\'')) {
      quote = quote ? 0 : c;
      in_word = true;
    } else if (!quote && kBlanks.find(c) != kBlanks.npos) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (quote) return fail(Code::invalid_argument, std::string("a quote is left open: ") + quote);
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string quote_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line.push_back(' ');
    line.push_back('\'');
    for (char c : word) c == '\'' ? line.append("'\\''") : line.append(1, c);
    line.push_back('\'');
  }
  return line;
}

}  // namespace osb
