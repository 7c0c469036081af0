#include "base/shell_words.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

using Words = std::vector<std::string>;

TEST(ShellWords, AreCutAsAShellWould) {
  struct Case {
    const char* line;
    Words words;
  } cases[] = {
      {"tail -f /dev/null", {"tail", "-f", "/dev/null"}},
      {"  a\t b\n", {"a", "b"}},
      {"", {}},
      {"sh -c 'sleep 1; exit 3'", {"sh", "-c", "sleep 1; exit 3"}},
      {R"(echo "a b" c\ d)", {"echo", "a b", "c d"}},
      {R"(a'b'"c"d)", {"abcd"}},
      {"x '' \"\"", {"x", "", ""}},
      {R"('a\b' "a\b" a\b)", {R"(a\b)", R"(a\b)", "ab"}},
      {R"("\"\\\$")", {R"("\$)"}},
      {"a;b|c $HOME *", {"a;b|c", "$HOME", "*"}},
  };
  for (const Case& c : cases) {
    auto words = shell_words(c.line);
    ASSERT_TRUE(words) << c.line;
    EXPECT_EQ(*words, c.words) << c.line;
  }
}

TEST(ShellWords, RefuseWhatIsLeftOpen) {
  for (const char* line : {"'", "a 'b", "\"", "a \"b\\\"", "a\\"}) EXPECT_FALSE(shell_words(line)) << line;
}

TEST(QuoteWords, AreCutIntoTheSameWords) {
  const std::vector<std::vector<std::string>> all = {
      {}, {""}, {"a"}, {"a", "", "b c"}, {"it's", "\"q\"", "\\", "$HOME", "*", "\n", "''"}};
  for (const auto& words : all) EXPECT_EQ(shell_words(quote_words(words)).value(), words);
}

}  // namespace
}  // namespace osb
