#include "base/last_words.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

TEST(LastWords, AreTheLastLinesWithoutTheirTimes) {
  EXPECT_EQ(last_words("", "|"), "");
  EXPECT_EQ(last_words("\n\n", "|"), "");
  EXPECT_EQ(last_words("2026-01-01T00:00:00Z boom\n", "|"), "boom");
  EXPECT_EQ(last_words("t1 one\nt2 two words\nt3 \n", "|"), "one|two words");
  EXPECT_EQ(last_words("word", "|"), "word");
}

TEST(LastWords, AreBounded) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "t " + std::to_string(i) + "\n";
  EXPECT_EQ(last_words(many, ","), "90,91,92,93,94,95,96,97,98,99");
  EXPECT_EQ(last_words("t " + std::string(5000, 'x') + "\n", ",").size(), 1000u);
}

}  // namespace
}  // namespace osb
