#include "cli/text_encoding.h"

#include <gtest/gtest.h>

namespace osb::cli {
namespace {

TEST(TextEncoding, NamesAreKnownInAnyCase) {
  EXPECT_EQ(find_encoding("UTF-8"), TextEncoding::utf8);
  EXPECT_EQ(find_encoding("iso-8859-1"), TextEncoding::latin1);
  EXPECT_EQ(find_encoding("Base64"), TextEncoding::base64);
  for (const char* name : {"", "utf-16", "rot13", "base64 "}) EXPECT_FALSE(find_encoding(name)) << name;
}

TEST(TextEncoding, Base64HasTheStandardsExamples) {
  for (auto [bytes, text] :
       {std::pair{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(to_text(bytes, TextEncoding::base64).value(), text);
    EXPECT_EQ(to_bytes(text, TextEncoding::base64).value(), bytes);
  }
}

TEST(TextEncoding, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (TextEncoding encoding : {TextEncoding::latin1, TextEncoding::base64}) {
    auto text = to_text(bytes, encoding);
    ASSERT_TRUE(text);
    EXPECT_EQ(to_bytes(*text, encoding).value(), bytes);
  }
}

TEST(TextEncoding, RefusesWhatIsNone) {
  EXPECT_FALSE(to_text("\xff", TextEncoding::utf8));
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9*", "Zm 9v", "=Zm9v", "Zm9v\n"})
    EXPECT_FALSE(to_bytes(text, TextEncoding::base64)) << text;
  for (const char* text : {"\xc4\x80", "\xe2\x82\xac", "\xc3"})
    EXPECT_FALSE(to_bytes(text, TextEncoding::latin1)) << text;
}

}  // namespace
}  // namespace osb::cli
