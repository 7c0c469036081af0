#include "execd/line_range.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

std::string cut(const std::string& text, LineRange range) {
  LineCutter whole(range);
  std::string expected = whole.feed(text);
  for (size_t i = 0; i <= text.size(); ++i) {
    LineCutter cutter(range);
    std::string got = cutter.feed(text.substr(0, i));
    got += cutter.feed(text.substr(i));
    EXPECT_EQ(got, expected) << "cut at " << i;
  }
  return expected;
}

TEST(LineRange, lines_are_joined_without_their_ends) {
  EXPECT_EQ(cut("a\nb\nc\n", {}), "a\nb\nc");
  EXPECT_EQ(cut("a\nb\nc", {}), "a\nb\nc");
  EXPECT_EQ(cut("a\r\nb\r\n", {}), "a\nb");
  EXPECT_EQ(cut("a\n\n\nb\n", {}), "a\n\n\nb");
  EXPECT_EQ(cut("\n\nb", {}), "\n\nb");
  EXPECT_EQ(cut("x\ry\r\n\r\nz\r", {}), "x\ry\n\nz");
  EXPECT_EQ(cut("", {}), "");
}

TEST(LineRange, ranges) {
  std::string text = "1\n2\n\n4\n5";
  EXPECT_EQ(cut(text, {1, 1}), "1");
  EXPECT_EQ(cut(text, {2, 2}), "2\n");
  EXPECT_EQ(cut(text, {2, 3}), "2\n\n4");
  EXPECT_EQ(cut(text, {3, 1}), "");
  EXPECT_EQ(cut(text, {5, 100}), "5");
  EXPECT_EQ(cut(text, {6, 100}), "");
}

TEST(LineRange, done_stops_reading) {
  LineCutter cutter({1, 2});
  cutter.feed("a\nb");
  EXPECT_FALSE(cutter.done());
  cutter.feed("\n");
  EXPECT_TRUE(cutter.done());
  EXPECT_EQ(cutter.feed("c\n"), "");
}

TEST(LineRange, parse) {
  EXPECT_FALSE(parse_line_range({}, {})->has_value());
  EXPECT_EQ((*parse_line_range("3", {}))->first, 3u);
  EXPECT_EQ((*parse_line_range({}, "7"))->count, 7u);
  for (const char* bad : {"0", "-1", "x", "", "1.5", " 1"}) {
    EXPECT_FALSE(parse_line_range(bad, {})) << bad;
    EXPECT_FALSE(parse_line_range({}, bad)) << bad;
  }
}

}  // namespace
}  // namespace osb::execd
