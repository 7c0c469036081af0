#include "cli/client_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::cli {
namespace {

using ::testing::HasSubstr;

TEST(ClientConfig, WhatItSaysGoesOverWhatIsThere) {
  ClientSettings settings;
  ASSERT_TRUE(
      read_client_config("[connection]\ndomain = \"h:1\"\nrequest_timeout = 5\n[output]\ncolor = false\n"
                         "[defaults]\nimage = \"i\"\ntimeout = 600\n[more]\nx = 1\n",
                         "f", settings));
  EXPECT_EQ(settings.domain, "h:1");
  EXPECT_EQ(settings.request_timeout, 5);
  EXPECT_FALSE(settings.color);
  EXPECT_EQ(settings.default_image, "i");
  EXPECT_EQ(settings.default_timeout, "600");
}

TEST(ClientConfig, WhatCannotBeUsedIsNamed) {
  ClientSettings settings;
  for (auto [text, word] : {std::pair{"[connection", "f:1"},
                            {"[output]\ncolor = 1", "output.color"},
                            {"[connection]\nrequest_timeout = -1", "request_timeout"},
                            {"connection = 3\n[x]", ""},
                            {"[connection]\ndomain = true", "connection.domain"}}) {
    auto read = read_client_config(text, "f", settings);
    if (*word) EXPECT_THAT(read.error().message, HasSubstr(word)) << text;
  }
}

TEST(ClientConfig, OneValueIsSetAndNothingElse) {
  std::string text = *set_in_client_config(kInitialClientConfig, "connection.domain", "h:1");
  EXPECT_THAT(text, HasSubstr("# use_server_proxy = false\ndomain = \"h:1\"\n\n[output]"));
  text = *set_in_client_config(text, "connection.domain", "h:2");
  EXPECT_THAT(text, HasSubstr("domain = \"h:2\"\n\n[output]"));
  EXPECT_EQ(text.find("h:1"), text.npos);
  text = *set_in_client_config(text, "output.color", "false");
  EXPECT_THAT(text, HasSubstr("color = false\n"));
  text = *set_in_client_config(text, "new.key", "a \"b\"\n");
  EXPECT_THAT(text, HasSubstr("[new]\nkey = \"a \\\"b\\\"\\u000a\"\n"));
}

TEST(ClientConfig, KeysAreSectionAndField) {
  for (const char* key : {"", "domain", ".x", "a.", "a.b.c", "a b.c", "a.b\n"})
    EXPECT_FALSE(set_in_client_config("", key, "v")) << key;
  EXPECT_FALSE(set_in_client_config("[broken", "a.b", "v"));
}

}  // namespace
}  // namespace osb::cli
