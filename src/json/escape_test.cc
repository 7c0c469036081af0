#include "json/escape.h"

#include <gmock/gmock.h>

#include <random>

#include "json/decode.h"

namespace osb::json {
namespace {

std::string literal(std::string_view bytes) {
  std::string out;
  append_string(out, bytes);
  return out;
}

TEST(AppendString, EscapesWhatTheTableSays) {
  struct Case {
    std::string_view bytes, text;
  };
  const Case cases[] = {
      {"", ""},
      {"plain text, more than eight bytes of it", "plain text, more than eight bytes of it"},
      {"\"\\/", "\\\"\\\\/"},
      {"<a href='x'>&amp;", "\\u003ca href='x'\\u003e\\u0026amp;"},
      {"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
      {{"\0\x01\x0b\x1b\x1c\x1d\x1e\x1f", 8}, "\\u0000\\u0001\\u000b\\u001b\\u001c\\u001d\\u001e\\u001f"},
      {" !#%';=?[]^\x7f", " !#%';=?[]^\x7f"},
      {"\xc3\xa9", "\xc3\xa9"},
      {"\xc2\x80\xc2\x84\xc2\x86", "\xc2\x80\xc2\x84\xc2\x86"},
      {"a\xc2\x85z", "a\\u0085z"},
      {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", "\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xaa"},
      {"\xef\xbf\xbd", "\xef\xbf\xbd"},  // a replacement character that was there already stays
      {"\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
      {"\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf",
       "\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"},
      // Not UTF-8: one replacement for each byte.
      {"\x80", "\\ufffd"},
      {"a\xffz", "a\\ufffdz"},
      {"\xfe\xff", "\\ufffd\\ufffd"},
      {"\xc3", "\\ufffd"},
      {"\xc3z", "\\ufffdz"},
      {"\xc3\xc3\xa9", "\\ufffd\xc3\xa9"},
      {"\xe2\x82", "\\ufffd\\ufffd"},
      {"\xe2\x82z", "\\ufffd\\ufffdz"},
      {"\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd"},
      {"\xf0\x9f\x98\"", "\\ufffd\\ufffd\\ufffd\\\""},
      {"\xc0\x80\xc1\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"},                        // overlong
      {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},                                   // overlong
      {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"},                        // overlong
      {"\xed\xa0\x80\xed\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"},  // surrogates
      {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},                        // beyond U+10FFFF
      {"\xf5\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(literal(c.bytes), "\"" + std::string(c.text) + "\"") << testing::PrintToString(c.bytes);
}

TEST(AppendString, FindsASpecialByteAtEveryOffset) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string alone = literal(std::string(1, static_cast<char>(byte)));
    std::string inner = alone.substr(1, alone.size() - 2);
    for (size_t length = 1; length <= 20; ++length) {
      for (size_t at = 0; at < length; ++at) {
        std::string text(length, 'a');
        text[at] = static_cast<char>(byte);
        ASSERT_EQ(literal(text),
                  "\"" + std::string(at, 'a') + inner + std::string(length - at - 1, 'a') + "\"")
            << byte << " at " << at << " of " << length;
      }
    }
  }
}

TEST(AppendMinimalString, EscapesOnlyWhatJsonNeeds) {
  std::string out;
  append_minimal_string(out, "<\"&\\> \n\x01 \xc2\x85\xe2\x80\xa8 \xc3\xa9\xff /'\x7f");
  EXPECT_EQ(out, "\"<\\\"&\\\\> \\n\\u0001 \xc2\x85\xe2\x80\xa8 \xc3\xa9\\ufffd /'\x7f\"");
}

TEST(AppendString, KeepsWhatIsThere) {
  std::string out = "{\"text\":";
  append_string(out, "x");
  EXPECT_EQ(out, "{\"text\":\"x\"");
}

// An independent, slow description of the repair: which bytes belong to well-formed sequences.
std::string repaired(std::string_view bytes) {
  struct Form {
    unsigned char low[4], high[4];
    size_t length;
  };
  static constexpr Form kForms[] = {
      {{0x00}, {0x7f}, 1},
      {{0xc2, 0x80}, {0xdf, 0xbf}, 2},
      {{0xe0, 0xa0, 0x80}, {0xe0, 0xbf, 0xbf}, 3},
      {{0xe1, 0x80, 0x80}, {0xec, 0xbf, 0xbf}, 3},
      {{0xed, 0x80, 0x80}, {0xed, 0x9f, 0xbf}, 3},
      {{0xee, 0x80, 0x80}, {0xef, 0xbf, 0xbf}, 3},
      {{0xf0, 0x90, 0x80, 0x80}, {0xf0, 0xbf, 0xbf, 0xbf}, 4},
      {{0xf1, 0x80, 0x80, 0x80}, {0xf3, 0xbf, 0xbf, 0xbf}, 4},
      {{0xf4, 0x80, 0x80, 0x80}, {0xf4, 0x8f, 0xbf, 0xbf}, 4},
  };
  std::string out;
  while (!bytes.empty()) {
    size_t length = 0;
    for (const Form& form : kForms) {
      bool fits = bytes.size() >= form.length;
      for (size_t i = 0; fits && i < form.length; ++i) {
        auto c = static_cast<unsigned char>(bytes[i]);
        fits = c >= form.low[i] && c <= form.high[i];
      }
      if (fits) length = form.length;
    }
    out.append(length ? bytes.substr(0, length) : "\xef\xbf\xbd");
    bytes.remove_prefix(length ? length : 1);
  }
  return out;
}

TEST(AppendString, ParsesBackToTheRepairedText) {
  static constexpr std::string_view kPieces[] = {
      "plain", "\xc3\xa9", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "\xc2\x85", "\xed\xa0\x80", "\n", "<",
      "\"",    "\\",       "\x80",         "\xe2\x82"};
  std::mt19937 random(20260102);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (unsigned n = random() % 12; n > 0; --n) {
      if (random() % 2)
        bytes.append(kPieces[random() % std::size(kPieces)]);
      else
        bytes.push_back(static_cast<char>(random()));
    }
    std::string text = literal(bytes);
    ASSERT_EQ(text.find_first_of("<>&\n\r\v\f\x1c\x1d\x1e"), text.npos);
    for (std::string_view cut : {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
      ASSERT_EQ(text.find(cut), text.npos);
    auto value = parse(text);
    ASSERT_TRUE(value) << text;
    ASSERT_EQ(std::string(value->as_string()), repaired(bytes)) << testing::PrintToString(bytes);
    std::string minimal;
    append_minimal_string(minimal, bytes);
    ASSERT_EQ(parse(minimal).value(), *value) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace osb::json
