#include "execd/glob.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

bool matches(const std::string& pattern, std::string_view name) {
  auto glob = Glob::parse(pattern);
  EXPECT_TRUE(glob) << pattern;
  return glob && glob->matches(name);
}

TEST(Glob, matches) {
  const std::pair<const char*, const char*> kTable[] = {
      {"**", "anything"},      {"*", ".hidden"},     {"*.txt", "a.txt"},
      {"*.txt", ".txt"},       {"a?c", "abc"},       {"a?c", "aéc"},
      {"???", "日本語"},       {"[abc]x", "bx"},     {"[a-c]x", "bx"},
      {"[!a-c]x", "dx"},       {"[^a]x", "bx"},      {"[-a]", "-"},
      {"[a-]", "-"},           {"[\\]]", "]"},       {"[à-ü]", "é"},
      {"{a,b}.c", "b.c"},      {"{a,{b,c}}x", "cx"}, {"{,pre}fix", "fix"},
      {"{,pre}fix", "prefix"}, {"**/x.py", "x.py"},  {"**/**/x", "x"},
      {"a**b", "axxb"},        {"\\*", "*"},         {"a\\?", "a?"},
      {"!(*.txt)", "a.py"},    {"a!(b)", "ac"},      {"!({a,b})", "c"},
      {"{*.py,*.js}", "m.js"}, {"{**/a,b}", "a"},    {"a,b", "a,b"},
      {"(a)", "(a)"},          {"a)", "a)"},         {"*{a,b}*", "xxbxx"},
      {"[[]x", "[x"},          {"\\!x", "!x"},       {"\xff?", "\xff\xfe"},
      {"*.tar.*", "x.tar.gz"},
  };
  for (auto [pattern, name] : kTable) EXPECT_TRUE(matches(pattern, name)) << pattern << " ~ " << name;
}

TEST(Glob, does_not_match) {
  const std::pair<const char*, const char*> kTable[] = {
      {"*.txt", "a.TXT"}, {"*.txt", "a.txt2"}, {"a?c", "ac"},        {"[abc]", "d"}, {"[!a]", "a"},
      {"{a,b}", "ab"},    {"a/b", "b"},        {"dir/*.py", "a.py"}, {"a/**", "a"},  {"!(*.txt)", "a.txt"},
      {"!({a,b})", "b"},  {"a!(b)", "ab"},     {"a!(b)", "a"},       {"", "a"},      {"?", ""},
      {"\\*", "x"},       {"[a-c]", "-"},      {"x**/a", "xa"},
  };
  for (auto [pattern, name] : kTable) EXPECT_FALSE(matches(pattern, name)) << pattern << " ~ " << name;
}

TEST(Glob, rejects) {
  for (const char* pattern : {"[", "[a", "[]", "[!]", "[]a]", "{a", "a}", "{a,{b}", "x\\", "a!b", "!", "!(a",
                              "[a\\", "{!(a}", "{!(a})", "!({a)"}) {
    auto glob = Glob::parse(pattern);
    EXPECT_FALSE(glob) << pattern;
    if (!glob) EXPECT_EQ(glob.error().code, Code::invalid_argument);
  }
  EXPECT_FALSE(Glob::parse(std::string(100, '{') + std::string(100, '}')));
}

TEST(Glob, hopeless_patterns_end) {
  std::string stars;
  for (int i = 0; i < 40; ++i) stars += "*a";
  EXPECT_FALSE(matches(stars + "b", std::string(255, 'a')));
  std::string braces;
  for (int i = 0; i < 30; ++i) braces += "{a,aa}";
  EXPECT_FALSE(matches(braces + "b", std::string(60, 'a')));
}

}  // namespace
}  // namespace osb::execd
