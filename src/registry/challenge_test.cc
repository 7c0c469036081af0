#include "registry/challenge.h"

#include <gmock/gmock.h>

namespace osb::registry {
namespace {

TEST(Challenges, ATokenServiceIsNamed) {
  auto found = parse_challenges(
      R"(Bearer realm="https://auth.example/token",service="reg, \"one\"",scope=repository:a/b:pull)");
  EXPECT_FALSE(found) << "a colon is no part of a bare value";
  found = parse_challenges(
      R"(Bearer realm="https://auth.example/token",service="reg, \"one\"",scope="repository:a/b:pull")");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().scheme, "bearer");
  EXPECT_EQ(found->front().get("realm"), "https://auth.example/token");
  EXPECT_EQ(found->front().get("service"), "reg, \"one\"");
  EXPECT_EQ(found->front().get("scope"), "repository:a/b:pull");
  EXPECT_EQ(found->front().get("error"), "");
}

TEST(Challenges, SeveralInOneField) {
  auto found = parse_challenges(R"(Negotiate, BASIC Realm = "x" , bearer realm="y")");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].scheme, "negotiate");
  EXPECT_EQ((*found)[1].get("realm"), "x");
  EXPECT_EQ((*found)[2].get("realm"), "y");
  EXPECT_TRUE(parse_challenges("")->empty());
}

TEST(Challenges, WhatMeansNothingIsRefused) {
  std::string many;
  for (int i = 0; i < 9; ++i) many += "s" + std::to_string(i) + ", ";
  std::string params = "basic ";
  for (int i = 0; i < 33; ++i) params += "p" + std::to_string(i) + "=1, ";
  for (const std::string& text :
       {std::string("realm=\"x\""), std::string("Bearer realm=\"x"), std::string("Bearer realm="),
        std::string("Bearer realm=,"), std::string("=x"), std::string("\"x\""),
        std::string("Bearer realm=\"x\\"), std::string("NTLM TlRM=="), std::string("Bearer \x01"),
        std::string("Bearer realm=\"a\r\nb\""), many, params,
        "Bearer realm=\"" + std::string(9000, 'a') + "\""}) {
    EXPECT_FALSE(parse_challenges(text)) << text.substr(0, 60);
  }
}

}  // namespace
}  // namespace osb::registry
