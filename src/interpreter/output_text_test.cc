#include "interpreter/output_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace osb::interpreter {
namespace {

using Texts = std::vector<std::string>;
using More = OutputText::More;

struct Collected {
  OutputText text;
  Texts texts;
  Collected& feed(std::string_view bytes) {
    text.feed(bytes, [this](std::string_view t) { texts.emplace_back(t); });
    return *this;
  }
  Collected& rest(More more) {
    text.take_rest(more, [this](std::string_view t) { texts.emplace_back(t); });
    return *this;
  }
};

TEST(OutputText, KeepsLinesTogether) {
  EXPECT_EQ(Collected().feed("a\nb\nc").texts, Texts{"a\nb\n"});
  EXPECT_EQ(Collected().feed("a\nb\nc").feed("d\n").texts, (Texts{"a\nb\n", "cd\n"}));
  EXPECT_EQ(Collected().feed("\n\n").texts, Texts{"\n\n"});
  EXPECT_EQ(Collected().feed("a").texts, Texts{});
}

TEST(OutputText, GivesTheRestWhenAsked) {
  EXPECT_EQ(Collected().feed("a\nb").rest(More::none).texts, (Texts{"a\n", "b"}));
  EXPECT_EQ(Collected().feed("a\n").rest(More::none).texts, Texts{"a\n"});
}

TEST(OutputText, DoesNotCutCodePointsWhileMoreMayCome) {
  EXPECT_EQ(Collected().feed("ab\xe2\x82").rest(More::may_come).feed("\xac\n").texts, (Texts{"ab", "€\n"}));
  EXPECT_EQ(Collected().feed("\xf0\x9f\xa6").rest(More::may_come).rest(More::none).texts,
            Texts{"\xf0\x9f\xa6"});
  EXPECT_EQ(Collected().feed("a\xff").rest(More::may_come).rest(More::none).texts.front().front(), 'a');
  EXPECT_EQ(Collected().feed("\x80\x80\x80\x80").rest(More::may_come).texts, Texts{"\x80\x80\x80\x80"});
}

TEST(OutputText, CutsWhatIsTooLong) {
  std::string long_line(OutputText::kMaxText * 2 + 10, 'x');
  auto cut = Collected().feed(long_line).texts;
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].size(), OutputText::kMaxText);

  std::string lines;
  while (lines.size() < OutputText::kMaxText * 2) lines += std::string(999, 'y') + "\n";
  std::string joined;
  for (const std::string& text : Collected().feed(lines).texts) {
    EXPECT_LE(text.size(), OutputText::kMaxText);
    EXPECT_EQ(text.back(), '\n');
    joined += text;
  }
  EXPECT_EQ(joined, lines);
}

TEST(OutputText, LosesNothingHoweverItArrives) {
  std::string all;
  for (int i = 0; i < 5000; ++i) all += "line " + std::to_string(i) + (i % 7 ? "\n" : "€");
  for (size_t piece : {size_t{1}, size_t{5}, size_t{4096}}) {
    Collected collected;
    for (size_t at = 0; at < all.size(); at += piece) collected.feed(std::string_view(all).substr(at, piece));
    std::string joined;
    for (const std::string& text : collected.rest(More::none).texts) joined += text;
    EXPECT_EQ(joined, all);
  }
}

}  // namespace
}  // namespace osb::interpreter
