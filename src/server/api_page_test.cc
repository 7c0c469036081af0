#include "server/api_page.h"

#include <gmock/gmock.h>

#include "json/decode.h"

namespace osb::server {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ApiPage, ShowsEveryOperationOfOurOwnDescription) {
  auto page = api_page(openapi_text());
  ASSERT_TRUE(page) << page.error().message;
  auto root = json::parse(openapi_text());
  ASSERT_TRUE(root);
  int operations = 0;
  for (const auto& [path, item] : root->at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      if (!operation.is_object()) continue;
      EXPECT_THAT(*page, HasSubstr("id=\"" + std::string(operation.at("operationId").as_string()) + "\""));
      ++operations;
    }
  }
  EXPECT_GT(operations, 20);
  EXPECT_THAT(*page, Not(HasSubstr("<script"))) << "nothing on it runs";
  EXPECT_THAT(*page, Not(HasSubstr("src="))) << "nothing comes from elsewhere";
}

TEST(ApiPage, TextIsText) {
  auto page = api_page(
      R"({"info":{"title":"<b>","description":"a `x<y` \"&\" `open"},"tags":[{"name":"t"}],"paths":{"/p<":)"
      R"({"get":{"tags":["t"],"operationId":"o","summary":"s","responses":{"200":{"$ref":"#/nowhere"}}}}}})");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_THAT(*page, HasSubstr("<h1>&lt;b&gt;</h1>"));
  EXPECT_THAT(*page, HasSubstr("a <code>x&lt;y</code> &quot;&amp;&quot; <code>open</code>"));
  EXPECT_THAT(*page, HasSubstr("<code>/p&lt;</code>"));
}

TEST(ApiPage, WhatIsNoDescriptionGivesAnEmptyPage) {
  EXPECT_FALSE(api_page("{"));
  for (const char* odd : {"[]", "1", R"({"paths":1})", R"({"paths":{"/":[]},"tags":[1,{}]})",
                          R"({"components":{"schemas":[]}})"}) {
    EXPECT_TRUE(api_page(odd)) << odd;
  }
}

}  // namespace
}  // namespace osb::server
