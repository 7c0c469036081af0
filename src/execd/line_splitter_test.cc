#include "execd/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace osb::execd {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string>;

using CarriageReturn = LineSplitter::CarriageReturn;

Texts split_pieces(const std::vector<std::string>& pieces, CarriageReturn cr = CarriageReturn::ends_line) {
  LineSplitter splitter(cr);
  Texts out;
  auto emit = [&](std::string_view text) { out.emplace_back(text); };
  for (const auto& piece : pieces) splitter.feed(piece, emit);
  splitter.flush(emit);
  return out;
}

// Every way of cutting the input in two, and byte by byte, gives the same texts.
Texts split(const std::string& input, CarriageReturn cr = CarriageReturn::ends_line) {
  Texts whole = split_pieces({input}, cr);
  for (size_t i = 0; i <= input.size(); ++i) {
    EXPECT_EQ(split_pieces({input.substr(0, i), input.substr(i)}, cr), whole) << "cut at " << i;
  }
  std::vector<std::string> bytes;
  for (char c : input) bytes.emplace_back(1, c);
  EXPECT_EQ(split_pieces(bytes, cr), whole);
  return whole;
}

TEST(LineSplitter, one_line_has_no_newline) {
  EXPECT_THAT(split("hi\n"), ElementsAre("hi"));
  EXPECT_THAT(split("hi"), ElementsAre("hi"));
  EXPECT_THAT(split(""), ElementsAre());
}

TEST(LineSplitter, blank_lines) {
  EXPECT_THAT(split("a\n\nb"), ElementsAre("a", "\n\n", "b"));
  EXPECT_THAT(split("a\n\nb\n\n\nc\n"), ElementsAre("a", "\n\n", "b", "\n\n", "\n", "c"));
  EXPECT_THAT(split("\na"), ElementsAre("\n", "a"));
  EXPECT_THAT(split("\n\n"), ElementsAre("\n", "\n"));
  EXPECT_THAT(split("a\n\n"), ElementsAre("a", "\n\n"));
}

TEST(LineSplitter, carriage_returns) {
  EXPECT_THAT(split("p 1%\rp 2%\rdone\n"), ElementsAre("p 1%", "p 2%", "done"));
  EXPECT_THAT(split("x\r\ny"), ElementsAre("x", "y"));
  EXPECT_THAT(split("a\r\rb"), ElementsAre("a", "\n\n", "b"));
  EXPECT_THAT(split("a\r\n\r\nb\r\n"), ElementsAre("a", "\n\n", "b"));
  EXPECT_THAT(split("\r"), ElementsAre("\n"));
  EXPECT_THAT(split("a\n\rb"), ElementsAre("a", "\n\n", "b"));
}

TEST(LineSplitter, sessions_keep_carriage_returns_inside_a_line) {
  auto text = CarriageReturn::is_text;
  EXPECT_THAT(split("p 1%\rp 2%\rdone\n", text), ElementsAre("p 1%\rp 2%\rdone"));
  EXPECT_THAT(split("x\r\ny", text), ElementsAre("x", "y"));
  EXPECT_THAT(split("x\r\r\n", text), ElementsAre("x\r"));
  EXPECT_THAT(split("a\r\n\r\nb", text), ElementsAre("a", "\n\n", "b"));
  EXPECT_THAT(split("tail\r", text), ElementsAre("tail"));
  EXPECT_THAT(split("\r", text), ElementsAre());
}

TEST(LineSplitter, bytes_pass_unchanged) {
  std::string odd("\0\xff\xfe\t\x1b[0m", 8);
  EXPECT_THAT(split(odd + "\n"), ElementsAre(odd));
}

TEST(LineSplitter, long_line_is_cut_between_code_points) {
  std::string line(LineSplitter::kMaxText - 1, 'x');
  line += "\xe2\x82\xac";  // the limit falls into it
  line += "tail";
  for (const auto& pieces : {Texts{line + "\nnext\n"}, Texts{line, "\n", "next\n"}}) {
    Texts texts = split_pieces(pieces);
    ASSERT_EQ(texts.size(), 3u);
    EXPECT_EQ(texts[0].size(), LineSplitter::kMaxText - 1);
    EXPECT_EQ(texts[1], "\xe2\x82\xactail");
    EXPECT_EQ(texts[2], "next");
  }
}

TEST(LineSplitter, line_of_exactly_the_limit_is_one_text) {
  std::string line(LineSplitter::kMaxText, 'x');
  EXPECT_EQ(split_pieces({line + "\n"}).size(), 1u);
  EXPECT_EQ(split_pieces({line, "\n", "\n"}), (Texts{line, "\n\n"}));
}

TEST(LineSplitter, the_end_of_a_cut_line_is_no_blank_line) {
  std::string line(LineSplitter::kMaxText + 1, 'x');
  LineSplitter splitter;
  Texts out;
  auto emit = [&](std::string_view text) { out.emplace_back(text); };
  splitter.feed(line, emit);
  splitter.feed("\n\n", emit);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[1], "x");
  EXPECT_EQ(out[2], "\n\n");
}

TEST(LineSplitter, continuation_bytes_alone_do_not_stall) {
  std::string line(3 * LineSplitter::kMaxText, '\x80');
  Texts texts = split_pieces({line});
  size_t total = 0;
  for (const auto& text : texts) total += text.size();
  EXPECT_EQ(total, line.size());
}

}  // namespace
}  // namespace osb::execd
