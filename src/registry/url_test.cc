#include "registry/url.h"

#include <gmock/gmock.h>

namespace osb::registry {
namespace {

TEST(Url, IsTakenApart) {
  auto url = parse_url("https://Registry.Example/v2/?a=b");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "registry.example");
  EXPECT_EQ(url->port, 443);
  EXPECT_EQ(url->target, "/v2/?a=b");
  EXPECT_EQ(url->authority(), "registry.example");
  EXPECT_EQ(parse_url("http://127.0.0.1:5000")->origin(), "http://127.0.0.1:5000");
  EXPECT_EQ(parse_url("http://127.0.0.1:5000")->target, "/");
  EXPECT_EQ(parse_url("http://h?x=1")->target, "/?x=1");
  EXPECT_EQ(parse_url("https://h/a#part")->target, "/a");
  auto six = parse_url("http://[::1]:5000/v2/");
  ASSERT_TRUE(six) << six.error().message;
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->port, 5000);
  EXPECT_EQ(six->origin(), "http://[::1]:5000");
  EXPECT_EQ(parse_url("https://[2001:DB8::7]")->authority(), "[2001:db8::7]");
}

TEST(Url, WhatIsNoneIsRefused) {
  for (std::string_view text : {"",
                                "h",
                                "ftp://h/",
                                "HTTPS://h/",
                                "https://",
                                "https:///a",
                                "https://user@h/",
                                "https://u:p@h/",
                                "https://h:0/",
                                "https://h:99999/",
                                "https://h:x/",
                                "https://[::1/",
                                "https://::1/",
                                "https://[h]/",
                                "https://[::1]:/",
                                "https://h/a b",
                                "https://h/a\r\nX: y",
                                "https://h/\x01",
                                "https://h\n/",
                                "https://-h/",
                                "https://a..b/"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  EXPECT_FALSE(parse_url("https://h/" + std::string(9000, 'a')));
}

TEST(Url, LocationsLeadOn) {
  Url base = *parse_url("https://h:5000/v2/x");
  EXPECT_EQ(resolve(base, "/blob?x=1")->origin(), "https://h:5000");
  EXPECT_EQ(resolve(base, "/blob?x=1")->target, "/blob?x=1");
  EXPECT_EQ(resolve(base, "http://other/y")->origin(), "http://other");
  for (std::string_view location : {"", "//other/x", "blob", "?x", "../x", "file:///etc/passwd", "/a b"})
    EXPECT_FALSE(resolve(base, location)) << location;
}

TEST(Url, OriginsAreComparedWhole) {
  Url one = *parse_url("https://h/");
  EXPECT_TRUE(one.same_origin(*parse_url("https://H:443/other")));
  EXPECT_FALSE(one.same_origin(*parse_url("http://h:443/")));
  EXPECT_FALSE(one.same_origin(*parse_url("https://h:444/")));
  EXPECT_FALSE(one.same_origin(*parse_url("https://h.example/")));
}

}  // namespace
}  // namespace osb::registry
