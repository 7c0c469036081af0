#include "sandbox/egress_target.h"

#include <gtest/gtest.h>

namespace osb::sandbox {
namespace {

using Kind = EgressTarget::Kind;

TEST(EgressTarget, KindsAreDecidedInOrder) {
  EXPECT_EQ(parse_target("10.0.0.1")->kind, Kind::prefix);
  EXPECT_EQ(parse_target(" 10.0.0.0/8 ")->prefix.bits, 8);
  EXPECT_EQ(parse_target("2001:db8::1")->prefix.bits, 128);
  EXPECT_EQ(parse_target("example.com")->kind, Kind::name);
  EXPECT_EQ(parse_target("Example.COM.")->name, "example.com");
  EXPECT_EQ(parse_target("*.example.com")->kind, Kind::below);
  EXPECT_EQ(parse_target("localhost")->name, "localhost");
  EXPECT_EQ(parse_target("xn--bcher-kva.example")->name, "xn--bcher-kva.example");
}

TEST(EgressTarget, WhatWouldNeverMatchIsRefused) {
  for (const char* text : {"",
                           " ",
                           "*",
                           "a.*.com",
                           "*.",
                           "foo bar",
                           "http://example.com/",
                           "example.com:443",
                           "example.com/path",
                           ".example.com",
                           "a..b",
                           "10.0.0.0/33",
                           "10.0.0.0/",
                           "10.0.0.0/-1",
                           "2001:db8::/129",
                           "/8",
                           "1.2.3",
                           "0x7f.1",
                           "2130706433",
                           "127.1",
                           "[::1]",
                           "user@example.com",
                           "ex\xc3\xa4mple.com",
                           "*.*.com",
                           "**.com",
                           "a.b/c/d"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
  EXPECT_FALSE(parse_target(std::string("a\0.com", 6)));
  EXPECT_FALSE(parse_target(std::string(254, 'a')));
  EXPECT_FALSE(parse_target(std::string(64, 'a') + ".com"));
  EXPECT_LT(parse_target(std::string(100'000, '/')).error().message.size(), 400u);
}

TEST(EgressTarget, NamesMatchWholeLabels) {
  auto exact = *parse_target("example.com"), below = *parse_target("*.example.com");
  EXPECT_TRUE(matches(exact, "example.com"));
  EXPECT_FALSE(matches(exact, "a.example.com"));
  EXPECT_TRUE(matches(below, "a.example.com"));
  EXPECT_TRUE(matches(below, "a.b.example.com"));
  EXPECT_FALSE(matches(below, "example.com"));
  EXPECT_FALSE(matches(below, "badexample.com"));
}

TEST(EgressTarget, RangesAreMasked) {
  auto range = *parse_target("10.1.2.3/12");
  EXPECT_TRUE(matches(range, *parse_ip("10.15.255.255")));
  EXPECT_FALSE(matches(range, *parse_ip("10.16.0.0")));
  EXPECT_FALSE(matches(range, *parse_ip("2001:db8::1")));
  EXPECT_TRUE(matches(*parse_target("0.0.0.0/0"), *parse_ip("8.8.8.8")));
  EXPECT_TRUE(matches(*parse_target("2001:db8::/33"), *parse_ip("2001:db8:7fff::")));
  EXPECT_FALSE(matches(*parse_target("2001:db8::/33"), *parse_ip("2001:db8:8000::")));
}

TEST(EgressTarget, AnAddressOfTheOldKindInTheNewIsTheOldOne) {
  EXPECT_EQ(*parse_ip("::ffff:1.2.3.4"), *parse_ip("1.2.3.4"));
  EXPECT_TRUE(matches(*parse_target("1.2.3.0/24"), *parse_ip("::ffff:1.2.3.4")));
  EXPECT_FALSE(parse_ip(std::string_view("1.2.3.4\0x", 9)));
}

TEST(EgressTarget, NormalNames) {
  EXPECT_EQ(normal_name("WWW.Example.COM."), "www.example.com");
  EXPECT_EQ(normal_name("_dmarc.example.com"), "_dmarc.example.com");
  for (const char* text : {"", ".", "..", "a..b", "a b", "a%2eb", "a/b", "a@b", "a:80"})
    EXPECT_FALSE(normal_name(text)) << text;
}

}  // namespace
}  // namespace osb::sandbox
