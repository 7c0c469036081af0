#include "http/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::http {
namespace {

using ::testing::ElementsAre;

TEST(Headers, FindsInAnyCaseAndKeepsRepeats) {
  Headers headers{{"Set-Cookie", "a=1"}, {"X-One", "1"}, {"set-cookie", "b=2"}};
  EXPECT_EQ(headers.get("SET-COOKIE"), "a=1");
  EXPECT_EQ(headers.size(), 3u);
  EXPECT_TRUE(headers.contains("x-one"));
  EXPECT_FALSE(headers.contains("x-on"));
  EXPECT_EQ(headers.find("nothing"), nullptr);
  EXPECT_EQ(headers.get("nothing"), "");
}

TEST(Headers, SetReplacesAllOfThatName) {
  Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}, {"C", "4"}, {"A", "5"}};
  headers.set("a", "new");
  std::vector<std::string> seen;
  for (const auto& [name, value] : headers) seen.push_back(name + "=" + value);
  EXPECT_THAT(seen, ElementsAre("A=new", "B=2", "C=4"));
  headers.set("D", "6");
  EXPECT_EQ(headers.get("d"), "6");
  headers.remove("B");
  EXPECT_FALSE(headers.contains("b"));
  EXPECT_EQ(headers.size(), 3u);
}

TEST(RequestHead, SplitsTheTarget) {
  RequestHead head;
  head.target = "///a//b?x=1?y&z";
  EXPECT_EQ(head.path(), "/a//b");
  EXPECT_EQ(head.query(), "x=1?y&z");
  head.target = "/";
  EXPECT_EQ(head.path(), "/");
  EXPECT_EQ(head.query(), "");
  head.target = "//?";
  EXPECT_EQ(head.path(), "/");
  EXPECT_EQ(head.query(), "");
}

TEST(Query, Decodes) {
  Query query("a=1&b=x+y%21&a=2&flag&=empty&bad=%zz&&c=1=2");
  EXPECT_EQ(query.get("a"), "2");
  EXPECT_THAT(query.all("a"), ElementsAre("1", "2"));
  EXPECT_EQ(query.get("b"), "x y!");
  EXPECT_EQ(query.get("flag"), "");
  EXPECT_EQ(query.get(""), "empty");
  EXPECT_EQ(query.get("bad"), "%zz");
  EXPECT_EQ(query.get("c"), "1=2");
  EXPECT_EQ(query.get("missing"), std::nullopt);
  EXPECT_TRUE(Query("").pairs().empty());
}

}  // namespace
}  // namespace osb::http
