#include "execd/env_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::execd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::map<std::string, std::string> parse(std::string_view text) {
  Environment base;
  base.set("HOME", "/root");
  base.set("PATH", "/bin");
  return parse_env_file(text, base);
}

TEST(EnvFile, plain) {
  EXPECT_THAT(parse("A=1\n\n  B = two words \n# C=3\nnonsense\n=x\nD=\n"),
              ElementsAre(Pair("A", "1"), Pair("B", "two words"), Pair("D", "")));
  EXPECT_THAT(parse("A=a=b"), ElementsAre(Pair("A", "a=b")));
  EXPECT_THAT(parse("A=1\r\nB=2\r\n"), ElementsAre(Pair("A", "1"), Pair("B", "2")));
  EXPECT_THAT(parse("PATH=/opt/x:$PATH\nX=${NOPE}y"),
              ElementsAre(Pair("PATH", "/opt/x:/bin"), Pair("X", "y")));
  EXPECT_THAT(parse("export A=1"), ElementsAre(Pair("A", "1")));
  EXPECT_THAT(parse(""), IsEmpty());
}

TEST(EnvFile, last_wins) { EXPECT_THAT(parse("A=1\nA='2'\nA=\"3\"\n"), ElementsAre(Pair("A", "3"))); }

TEST(EnvFile, single_quotes_are_literal_and_may_span_lines) {
  EXPECT_THAT(parse("A='$HOME \\n \"x\"'\n"), ElementsAre(Pair("A", "$HOME \\n \"x\"")));
  EXPECT_THAT(parse("A='l1\nB=2\n\nl4'\nC=3\n"), ElementsAre(Pair("A", "l1\nB=2\n\nl4"), Pair("C", "3")));
  EXPECT_THAT(parse("A=''\nB='x'   # note\n"), ElementsAre(Pair("A", ""), Pair("B", "x")));
  EXPECT_THAT(parse("A=' x '"), ElementsAre(Pair("A", " x ")));
}

TEST(EnvFile, double_quotes_have_escapes_and_expand_what_is_known) {
  EXPECT_THAT(parse(R"(A="it's \\ \" \n \r \t \q")"), ElementsAre(Pair("A", "it's \\ \" \n \r \t \\q")));
  EXPECT_THAT(parse(R"(A="$HOME/it's" )"), ElementsAre(Pair("A", "/root/it's")));
  EXPECT_THAT(parse(R"(A="pa$$word it's$money \$HOME")"),
              ElementsAre(Pair("A", "pa$$word it's$money $HOME")));
  EXPECT_THAT(parse("A=\"l1\nl2\"\nB=1"), ElementsAre(Pair("A", "l1\nl2"), Pair("B", "1")));
}

TEST(EnvFile, a_quote_that_does_not_close_is_a_plain_value) {
  EXPECT_THAT(parse("A='x\nB=2\n"), ElementsAre(Pair("A", "'x"), Pair("B", "2")));
  EXPECT_THAT(parse("A='x' y\nB=2\n"), ElementsAre(Pair("A", "'x' y"), Pair("B", "2")));
  EXPECT_THAT(parse("A=\"x\nB=2\n"), ElementsAre(Pair("A", "\"x"), Pair("B", "2")));
}

TEST(EnvFile, rejected_keys) { EXPECT_THAT(parse("A B=1\n'A'=2\n\tC D = 3\n"), IsEmpty()); }

}  // namespace
}  // namespace osb::execd
