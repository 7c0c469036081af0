#include "base/strings.h"

#include <gmock/gmock.h>

#include <cstdint>

namespace osb {
namespace {

using testing::ElementsAre;

TEST(Strings, Case) {
  EXPECT_EQ(to_lower("AbC-\xc3\x89Z@[`{"), "abc-\xc3\x89z@[`{");
  EXPECT_TRUE(iequals("Content-Type", "cONTENT-tYPE"));
  EXPECT_TRUE(iequals("", ""));
  EXPECT_FALSE(iequals("a", "ab"));
  EXPECT_FALSE(iequals("@", "`"));  // differ by the bit that separates cases, but are no letters
  EXPECT_FALSE(iequals("[", "{"));
}

TEST(Strings, Trim) {
  EXPECT_EQ(trim(" \t\r\n a b \n"), "a b");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim("a"), "a");
  EXPECT_EQ(trim("\va\f"), "\va\f");
}

TEST(Strings, SplitKeepsEmptyPieces) {
  EXPECT_THAT(split("a,b,c", ','), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split(",a,,", ','), ElementsAre("", "a", "", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("abc", ','), ElementsAre("abc"));
}

TEST(Strings, ConstantTimeEquals) {
  EXPECT_TRUE(constant_time_equals("", ""));
  EXPECT_TRUE(constant_time_equals("secret", "secret"));
  EXPECT_FALSE(constant_time_equals("secret", "secreT"));
  EXPECT_FALSE(constant_time_equals("Secret", "secret"));
  EXPECT_FALSE(constant_time_equals("", "secret"));
  EXPECT_FALSE(constant_time_equals("secret", ""));
  EXPECT_FALSE(constant_time_equals("secret", "secretsecret"));
  EXPECT_FALSE(constant_time_equals("secretsecret", "secret"));  // repeats the other
  EXPECT_FALSE(constant_time_equals(std::string(1, '\0'), ""));
}

TEST(Strings, PercentDecode) {
  EXPECT_EQ(percent_decode("a%20b%2Fc+d", Plus::literal), "a b/c+d");
  EXPECT_EQ(percent_decode("a+b%2b", Plus::space), "a b+");
  EXPECT_EQ(percent_decode("%c3%A9", Plus::literal), "\xc3\xa9");
  EXPECT_EQ(percent_decode("%25zz", Plus::literal), "%zz");
  EXPECT_EQ(percent_decode("", Plus::literal), "");
  for (std::string_view text :
       {"%", "a%", "%4", "a%4", "%zz", "%4g", "%g4", "% 4", "%+4", "%%41", "%00", "a%00b"}) {
    EXPECT_EQ(percent_decode(text, Plus::literal), std::nullopt) << text;
  }
  EXPECT_EQ(percent_decode({"a\0b", 3}, Plus::literal), std::nullopt);
}

TEST(Strings, PercentEncodeIsUndoneByDecode) {
  EXPECT_EQ(percent_encode("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(percent_encode("a b/c?\xc3\xa9%"), "a%20b%2Fc%3F%C3%A9%25");
  std::string all;
  for (int c = 1; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percent_decode(percent_encode(all), Plus::literal), all);
  EXPECT_EQ(percent_decode(percent_encode(all), Plus::space), all);
}

TEST(Strings, ParseNumberTakesTheWholeText) {
  EXPECT_EQ(parse_number<int>("-42"), -42);
  EXPECT_EQ(parse_number<uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_number<int>("007"), 7);
  for (std::string_view text :
       {"", " ", "-", "+1", " 1", "1 ", "1a", "0x1", "1.0", "1e3", "--1", "99999999999999999999"}) {
    EXPECT_EQ(parse_number<int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<uint16_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<int>({"1\0", 2}), std::nullopt);
}

}  // namespace
}  // namespace osb
