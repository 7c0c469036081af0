#include "egress/verdict.h"

#include <gtest/gtest.h>

namespace osb::egress {
namespace {

Policy policy(bool rest, std::initializer_list<const char*> rules) {
  Policy out{rest};
  for (std::string_view rule : rules)
    out.rules.push_back(*make_rule(rule[0] == '+' ? "allow" : "deny", rule.substr(1)));
  return out;
}

IpAddress at(const char* text) { return *sandbox::parse_ip(text); }

const Overlay kNone;

TEST(Verdict, TheFirstRuleThatFitsANameCounts) {
  Policy p = policy(
      false, {"+*.example.com", "-api.example.com", "+*.internal.example.com", "-10.0.0.1", "+10.0.0.0/24"});
  Judge judge(kNone, p);
  EXPECT_TRUE(judge.name("api.example.com").allow);
  EXPECT_TRUE(judge.name("a.internal.example.com").allow);
  EXPECT_FALSE(judge.name("example.com").allow);
  EXPECT_FALSE(judge.name("unknown.test").allow);
  EXPECT_EQ(judge.name("unknown.test").rule, "default deny");
  EXPECT_EQ(judge.name("www.example.com").rule, "allow *.example.com");
  EXPECT_FALSE(judge.connection(at("10.0.0.1"), 80, {}, false).allow);
  EXPECT_TRUE(judge.connection(at("10.0.0.7"), 80, {}, false).allow);
}

TEST(Verdict, ADenialOfAnAddressCountsBeforeAnyPermission) {
  Policy p = policy(false, {"+10.0.0.5", "-10.0.0.0/8", "+name.test", "-1.2.3.0/24"});
  Judge judge(kNone, p);
  EXPECT_FALSE(judge.connection(at("10.0.0.5"), 80, {}, false).allow);
  EXPECT_FALSE(judge.connection(at("1.2.3.4"), 80, {"name.test"}, false).allow);
}

TEST(Verdict, AnAddressNeedsANameThatLedToIt) {
  Policy p = policy(false, {"+name.test"});
  Judge judge(kNone, p);
  EXPECT_FALSE(judge.connection(at("1.2.3.4"), 80, {}, false).allow);
  EXPECT_TRUE(judge.connection(at("1.2.3.4"), 80, {"name.test"}, false).allow);
  EXPECT_FALSE(judge.connection(at("1.2.3.4"), 80, {"other.test"}, false).allow);
  EXPECT_TRUE(judge.connection(at("1.2.3.4"), 80, {"other.test", "name.test"}, false).allow);
  EXPECT_FALSE(judge.connection(at("1.2.3.4"), 853, {"name.test"}, false).allow);
}

TEST(Verdict, WhatIsPrivateNeedsARuleForTheAddress) {
  Policy open = policy(true, {}), named = policy(true, {"+name.test"}),
         opened = policy(true, {"+10.0.0.0/8"});
  for (const char* closed : {"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
                             "168.63.129.16", "198.18.0.1", "fd00::1", "64:ff9b::10.0.0.1",
                             "2002:0a00:0001::1", "64:ff9b:1::1", "2001::1", "::10.0.0.1"}) {
    EXPECT_FALSE(Judge(kNone, open).connection(at(closed), 80, {}, false).allow) << closed;
    EXPECT_FALSE(Judge(kNone, named).connection(at(closed), 80, {"name.test"}, false).allow) << closed;
  }
  EXPECT_TRUE(Judge(kNone, opened).connection(at("10.0.0.1"), 80, {}, false).allow);
  EXPECT_TRUE(Judge(kNone, open).connection(at("1.2.3.4"), 80, {}, false).allow);
  EXPECT_TRUE(Judge(kNone, open).connection(at("64:ff9b::1.2.3.4"), 80, {}, false).allow);
  EXPECT_FALSE(Judge(kNone, open).connection(at("1.2.3.4"), 80, {}, true).allow);  // the host's own
}

TEST(Verdict, SomeAddressesAreNeverReached) {
  Policy all = policy(true, {"+0.0.0.0/0", "+::/0"});
  for (const char* nowhere : {"127.0.0.1", "127.9.9.9", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1",
                              "::", "ff02::1", "fe80::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1"}) {
    EXPECT_FALSE(Judge(kNone, all).connection(at(nowhere), 80, {"name.test"}, false).allow) << nowhere;
  }
}

TEST(Verdict, TheOperatorComesFirst) {
  Overlay overlay;
  overlay.deny.push_back(*make_rule("deny", "*.evil.test"));
  overlay.deny.push_back(*make_rule("deny", "1.2.3.4"));
  overlay.allow.push_back(*make_rule("allow", "mirror.test"));
  overlay.allow.push_back(*make_rule("allow", "a.evil.test"));
  Policy p = policy(false, {"+a.evil.test", "-mirror.test", "+1.2.3.4"});
  Judge judge(overlay, p);
  EXPECT_FALSE(judge.name("a.evil.test").allow);
  EXPECT_EQ(judge.name("a.evil.test").rule, "deny *.evil.test (of the operator)");
  EXPECT_TRUE(judge.name("mirror.test").allow);
  EXPECT_FALSE(judge.connection(at("1.2.3.4"), 80, {}, false).allow);
  // The operator may lead a name into the host's own network.
  EXPECT_TRUE(judge.connection(at("10.0.0.1"), 80, {"mirror.test"}, false).allow);
}

TEST(Verdict, WhatTheClientSaysMustFit) {
  Policy p = policy(false, {"+name.test", "+1.2.3.4", "-bad.test"});
  Judge judge(kNone, p);
  Verdict by_name = judge.connection(at("9.9.9.9"), 443, {"name.test"}, false);
  EXPECT_TRUE(judge.spoken(by_name, at("9.9.9.9"), "NAME.test.").allow);
  EXPECT_FALSE(judge.spoken(by_name, at("9.9.9.9"), "other.test").allow);
  EXPECT_FALSE(judge.spoken(by_name, at("9.9.9.9"), "na me").allow);
  EXPECT_TRUE(judge.spoken(by_name, at("9.9.9.9"), "9.9.9.9").allow);
  EXPECT_TRUE(judge.spoken(by_name, at("9.9.9.9"), "::ffff:9.9.9.9").allow);
  EXPECT_FALSE(judge.spoken(by_name, at("9.9.9.9"), "9.9.9.8").allow) << "whom a proxy is asked for";
  EXPECT_FALSE(judge.spoken(by_name, at("9.9.9.9"), "10.0.0.1").allow);
  EXPECT_TRUE(judge.spoken(by_name, at("9.9.9.9"), "1.2.3.4").allow) << "a rule names it";
  Verdict by_address = judge.connection(at("1.2.3.4"), 443, {}, false);
  EXPECT_TRUE(judge.spoken(by_address, at("1.2.3.4"), "other.test").allow);
  EXPECT_FALSE(judge.spoken(by_address, at("1.2.3.4"), "bad.test").allow);
  Policy open = policy(true, {"-bad.test"});
  Judge lenient(kNone, open);
  EXPECT_TRUE(lenient.spoken({.allow = true}, at("9.9.9.9"), "8.8.8.8").allow);
  EXPECT_FALSE(lenient.spoken({.allow = true}, at("9.9.9.9"), "169.254.169.254").allow);
}

TEST(Verdict, SaysWhatKindOfRuleHasDecided) {
  Overlay overlay{.deny = {*make_rule("deny", "never.test")}};
  Policy policy{.rules = {*make_rule("deny", "other.test")}};
  Judge judge(overlay, policy);
  EXPECT_EQ(judge.name("never.test").ground, Ground::operator_rule);
  EXPECT_EQ(judge.name("other.test").ground, Ground::rule);
  EXPECT_EQ(judge.name("third.test").ground, Ground::standard);
  EXPECT_EQ(judge.connection(*sandbox::parse_ip("10.0.0.1"), 80, {}, false).ground, Ground::address);
  EXPECT_EQ(judge.connection(*sandbox::parse_ip("8.8.8.8"), 80, {}, true).ground, Ground::address);
  EXPECT_EQ(judge.spoken({.allow = true}, at("9.9.9.9"), "a b").ground, Ground::form);
}

TEST(Verdict, NobodyLooksWhereNamesMakeNoDifference) {
  EXPECT_FALSE(Judge(kNone, policy(true, {})).looks_at_names({}));
  Policy addresses = policy(true, {"-1.2.3.4", "+name.test"});
  EXPECT_FALSE(Judge(kNone, addresses).looks_at_names({}));
  Policy names = policy(true, {"-bad.test"}), closed = policy(false, {});
  EXPECT_TRUE(Judge(kNone, names).looks_at_names({}));
  EXPECT_TRUE(Judge(kNone, closed).looks_at_names({}));
  // A rule that names the address has decided, unless a name is denied.
  EXPECT_FALSE(Judge(kNone, closed).looks_at_names({.allow = true, .by_address = true}));
  EXPECT_TRUE(Judge(kNone, names).looks_at_names({.allow = true, .by_address = true}));
}

}  // namespace
}  // namespace osb::egress
