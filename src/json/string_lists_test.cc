#include "json/string_lists.h"

#include <gtest/gtest.h>

namespace osb::json {
namespace {

TEST(StringLists, BothWays) {
  std::vector<std::string> words{"sh", "-c", "echo \"x\"\n", "", "ä<b>"};
  EXPECT_EQ(parse_list(list_text(words)), words);
  EXPECT_EQ(list_text({}), "[]");
  EXPECT_EQ(parse_list("[]"), std::vector<std::string>());
  StringMap members{{"", "empty"}, {"a.b/c", ""}, {"k\"", "v\\"}};
  EXPECT_EQ(parse_map(map_text(members)), members);
  EXPECT_EQ(map_text({}), "{}");
  EXPECT_EQ(parse_map(" { } "), StringMap());
}

TEST(StringLists, NothingElseIsOne) {
  for (const char* text : {"", "{}", "null", "[1]", "[\"a\"", "[[\"a\"]]", "[null]", "\"a\"", "[\"a\"]x"})
    EXPECT_FALSE(parse_list(text)) << text;
  for (const char* text :
       {"", "[]", "null", "{\"a\":1}", "{\"a\":\"b\"", "{\"a\":{}}", "{\"a\":null}", "{a:\"b\"}", "{}x"})
    EXPECT_FALSE(parse_map(text)) << text;
}

}  // namespace
}  // namespace osb::json
