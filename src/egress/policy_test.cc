#include "egress/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::egress {
namespace {

using testing::HasSubstr;

std::string text(const Policy& policy) {
  std::string out = policy.allow_the_rest ? "allow:" : "deny:";
  for (const Rule& rule : policy.rules) out += std::string(rule.allow ? " +" : " -") + rule.text;
  return out;
}

TEST(Policy, NothingDeniesEverything) {
  for (const char* given :
       {"", "  ", "null", "{}", R"({"egress":null})", R"({"defaultAction":"","egress":[]})"}) {
    auto policy = parse_policy(given);
    ASSERT_TRUE(policy) << given;
    EXPECT_EQ(text(*policy), "deny:");
    EXPECT_EQ(mode_of(*policy), "deny_all");
  }
  EXPECT_EQ(mode_of(*parse_policy(R"({"defaultAction":" Allow "})")), "allow_all");
}

TEST(Policy, RulesKeepTheirOrderAndText) {
  auto policy = parse_policy(
      R"({"defaultAction":"deny","other":1,"egress":[{"action":"ALLOW","target":" Example.com "},{"target":"10.0.0.0/8"}]})");
  ASSERT_TRUE(policy);
  EXPECT_EQ(text(*policy), "deny: +Example.com -10.0.0.0/8");
  EXPECT_EQ(to_json(*policy),
            R"({"defaultAction":"deny","egress":[{"action":"allow","target":"Example.com"},)"
            R"({"action":"deny","target":"10.0.0.0/8"}]})");
  EXPECT_EQ(text(*parse_policy(to_json(*policy))), text(*policy));
}

TEST(Policy, WrongOnesAreRefusedWithTheCause) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"defaultAction":"perhaps"})", "allow or deny"},
      {R"({"defaultAction":1})", "defaultAction"},
      {R"({"egress":{}})", "egress"},
      {R"({"egress":[null]})", "object"},
      {R"({"egress":["a.com"]})", "egress"},
      {R"({"egress":[{"action":"drop","target":"a.com"}]})", "unsupported action"},
      {R"({"egress":[{"action":"allow"}]})", "cannot be empty"},
      {R"({"egress":[{"action":"allow","target":"*"}]})", "no egress target"},
      {R"({"egress":[{"action":"allow","target":7}]})", "target"},
      {R"([])", "policy"},
      {R"({)", ""},
      {R"("allow")", "policy"},
  };
  for (const auto& [given, cause] : kCases) {
    auto policy = parse_policy(given);
    ASSERT_FALSE(policy) << given;
    EXPECT_THAT(policy.error().message, HasSubstr(cause)) << given;
  }
}

TEST(Policy, APatchComesFirstAndReplacesTheSameTarget) {
  auto base = *parse_policy(
      R"({"egress":[{"action":"allow","target":"example.com"},{"action":"deny","target":"*.example.com"}]})");
  auto patch =
      *parse_rules(R"([{"action":"deny","target":"blocked.com"},{"action":"allow","target":"example.com"}])");
  EXPECT_EQ(text(merge(base, patch)), "deny: -blocked.com +example.com -*.example.com");
  auto old = *parse_policy(R"({"egress":[{"action":"deny","target":"Example.COM"}]})");
  EXPECT_EQ(text(merge(old, *parse_rules(R"([{"action":"allow","target":"example.com"}])"))),
            "deny: +example.com");
}

TEST(Policy, WithoutSomeTargets) {
  auto base = *parse_policy(
      R"({"egress":[{"action":"allow","target":"Example.com"},{"action":"allow","target":"10.0.0.0/8"}]})");
  EXPECT_EQ(text(without(base, {" EXAMPLE.com"})), "deny: +10.0.0.0/8");
  EXPECT_EQ(text(without(base, {"", "nothing.com"})), text(base));
}

TEST(Policy, ListsMustNotBeEmpty) {
  EXPECT_EQ(parse_rules("[]").error().message, "empty array");
  EXPECT_EQ(parse_targets("[]").error().message, "empty array");
  for (const char* wrong : {"{}", "null", "1", "[1]", "[[]]", "x"}) {
    EXPECT_FALSE(parse_rules(wrong)) << wrong;
    EXPECT_FALSE(parse_targets(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace osb::egress
