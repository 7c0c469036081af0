#include "sandbox/webhook.h"

#include <gtest/gtest.h>

namespace osb::sandbox {
namespace {

TEST(Webhook, HasHostPortAndTarget) {
  auto hook = parse_webhook("http://hooks.example:8080/denied?team=a");
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->host, "hooks.example");
  EXPECT_EQ(hook->port, 8080);
  EXPECT_EQ(hook->target, "/denied?team=a");
  EXPECT_EQ(hook->authority, "hooks.example:8080");
  hook = parse_webhook("http://192.0.2.1");
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->port, 80);
  EXPECT_EQ(hook->target, "/");
  hook = parse_webhook("http://[2001:db8::1]:81?x");
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->host, "2001:db8::1");
  EXPECT_EQ(hook->target, "/?x");
  EXPECT_FALSE(hook->tls);
  hook = parse_webhook("https://hooks.example/denied");
  ASSERT_TRUE(hook);
  EXPECT_TRUE(hook->tls);
  EXPECT_EQ(hook->port, 443);
  EXPECT_EQ(parse_webhook("https://hooks.example:8443/")->port, 8443);
}

TEST(Webhook, OthersAreRefused) {
  for (const char* wrong : {"",
                            "hooks.example",
                            "https://",
                            "https://:443/",
                            "https://user@hooks.example/",
                            "HTTPS://hooks.example/",
                            "ftp://hooks.example/",
                            "http://",
                            "http:///x",
                            "http://:80/",
                            "http://a b/",
                            "http://user@hooks.example/",
                            "http://hooks.example:0/",
                            "http://hooks.example:65536/",
                            "http://hooks.example:/",
                            "http://hooks.example:80:81/",
                            "http://[::1",
                            "http://[hooks.example]/",
                            "http://[::1]80/",
                            "http://hooks.example/#part",
                            "http://hooks.example/\r\nX: y",
                            "http://hooks..example/",
                            "HTTP://hooks.example/"}) {
    EXPECT_FALSE(parse_webhook(wrong)) << wrong;
  }
  EXPECT_FALSE(parse_webhook("http://hooks.example/" + std::string(3000, 'a')));
}

}  // namespace
}  // namespace osb::sandbox
