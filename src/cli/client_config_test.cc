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

TEST(ClientConfig, ContextsComeAndGo) {
  Context far{.domain = "far.example", .protocol = "https", .api_key = "k\"1", .tls = {.authority = "/ca"}};
  Context near;
  near.domain = "n:2";
  std::string text = *put_context("# mine\n[connection]\ndomain = \"h:1\"\n", "far", far);
  text = *choose_context(*put_context(text, "near", near), "far");
  ClientSettings settings;
  ASSERT_TRUE(read_client_config(text, "f", settings));
  EXPECT_EQ(settings.chosen_context, "far");
  EXPECT_EQ(settings.domain, "h:1");
  ASSERT_EQ(settings.contexts.size(), 2u);
  EXPECT_EQ(settings.contexts["far"].api_key, "k\"1");
  EXPECT_EQ(settings.contexts["far"].tls.authority, "/ca");
  text = *remove_context(*choose_context(text, ""), "far");
  EXPECT_THAT(text, HasSubstr("# mine\n[connection]\ndomain = \"h:1\"\n"));
  EXPECT_EQ(text.find("far"), text.npos);
  EXPECT_THAT(text, HasSubstr("[contexts.near]\ndomain = \"n:2\"\n"));
}

TEST(ClientConfig, WhatIsNoContext) {
  Context here;
  here.domain = "h";
  for (const char* name : {"", "a.b", "a b", "a]", "a\n[x"})
    EXPECT_FALSE(put_context("", name, here)) << name;
  EXPECT_FALSE(put_context("[broken", "a", here));
  ClientSettings settings;
  for (const char* text :
       {"[contexts]\na = 1", "[contexts.a]\nprotocol = \"https\"", "[contexts.a]\ndomain = true"})
    EXPECT_FALSE(read_client_config(text, "f", settings)) << text;
}

TEST(ClientConfig, KeysAreSectionAndField) {
  for (const char* key : {"", "domain", ".x", "a.", "a.b.c", "a b.c", "a.b\n"})
    EXPECT_FALSE(set_in_client_config("", key, "v")) << key;
  EXPECT_FALSE(set_in_client_config("[broken", "a.b", "v"));
}

}  // namespace
}  // namespace osb::cli
