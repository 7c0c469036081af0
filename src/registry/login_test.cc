#include "registry/login.h"

#include <gmock/gmock.h>

namespace osb::registry {
namespace {

TEST(LoginFile, PasswordsByHost) {
  auto logins = parse_login_file(R"({"auths":{
      "https://index.docker.io/v1/":{"auth":"bWU6c2VjcmV0"},
      "127.0.0.1:5000":{"auth":"YTpiOmM="},
      "Registry.Example":{"username":"u","password":"p"},
      "store.example":{}},"credsStore":"desktop","HttpHeaders":{"a":"b"}})");
  ASSERT_TRUE(logins) << logins.error().message;
  EXPECT_EQ(logins->size(), 3u);
  EXPECT_EQ(logins->at("docker.io").username, "me");
  EXPECT_EQ(logins->at("docker.io").password, "secret");
  EXPECT_EQ(logins->at("127.0.0.1:5000").password, "b:c");
  EXPECT_EQ(logins->at("registry.example").username, "u");
  EXPECT_TRUE(parse_login_file("{}")->empty());
}

TEST(LoginFile, WhatIsNoneIsRefused) {
  for (std::string_view text :
       {"", "[]", "{\"auths\":1}", "{\"auths\":{\"a\":1}}", "{\"auths\":{\"a\":{\"auth\":1}}}",
        "{\"auths\":{\"a\":{\"auth\":\"!\"}}}", "{\"auths\":{\"a\":{\"auth\":\"bWU=\"}}}"}) {
    EXPECT_FALSE(parse_login_file(text)) << text;
  }
}

}  // namespace
}  // namespace osb::registry
