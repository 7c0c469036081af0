#include "egress/sidecar_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::egress {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Result<SidecarSettings> with(std::string_view name, std::string_view value) {
  return sidecar_settings(
      {"PATH=/bin", "OPENSANDBOX_EGRESS_" + std::string(name) + "=" + std::string(value)});
}

TEST(SidecarSettings, DenyEverythingWhenNothingIsSaid) {
  auto settings = sidecar_settings({});
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->policy.allow_the_rest);
  EXPECT_THAT(settings->policy.rules, IsEmpty());
  EXPECT_EQ(settings->api_port, 18080);
  EXPECT_EQ(settings->most_rules, kMostRules);
  EXPECT_THAT(settings->warnings, IsEmpty());
  for (const char* empty : {"", "null", "{}", "  "})
    EXPECT_EQ(mode_of(with("RULES", empty)->policy), "deny_all");
}

TEST(SidecarSettings, AreForASidecarWhenOneIsThere) {
  EXPECT_FALSE(is_for_sidecar({"PATH=/bin", "OPENSANDBOX_LOG_OUTPUT=stdout", "X=OPENSANDBOX_EGRESS_RULES="}));
  EXPECT_TRUE(is_for_sidecar({"OPENSANDBOX_EGRESS_RULES="}));
}

TEST(SidecarSettings, AreTaken) {
  EXPECT_THAT(with("RULES", R"({"egress":[{"action":"allow","target":"a.test"}]})")->policy.rules, SizeIs(1));
  EXPECT_EQ(with("TOKEN", " kept as it is\n")->token, " kept as it is\n");
  EXPECT_EQ(with("HTTP_ADDR", "127.0.0.1:81")->api_port, 81);
  EXPECT_EQ(with("HTTP_ADDR", "[::1]:81")->api_host, "::1");
  EXPECT_EQ(with("HTTP_ADDR", ":81")->api_host, "");
  EXPECT_EQ(with("MAX_RULES", "7")->most_rules, 7);
  EXPECT_EQ(with("MAX_RULES", "-1")->most_rules, kMostRules);
  EXPECT_EQ(with("MAX_RULES", "0")->most_rules, 65536);
  EXPECT_THAT(with("DNS_UPSTREAM", "1.1.1.1, [2001:db8::1]:53,")->name_servers, SizeIs(2));
  EXPECT_EQ(with("DNS_UPSTREAM_TIMEOUT", "7")->dns_patience, std::chrono::seconds(7));
  EXPECT_EQ(with("DNS_UPSTREAM_TIMEOUT", "0")->dns_patience, std::chrono::seconds(5));
  EXPECT_EQ(with("DNS_UPSTREAM_TIMEOUT", "9999")->dns_patience, std::chrono::seconds(120));
  EXPECT_EQ(with("BLOCK_DOH_443", "YES ")->https, Overlay::Https::closed);
  EXPECT_EQ(with("BLOCK_DOH_443", "no")->https, Overlay::Https::open);
  EXPECT_EQ(with("SANDBOX_ID", "box")->sandbox_id, "box");
  for (const char* mode : {"", "dns", "DNS + nft", "nft+dns"}) EXPECT_TRUE(with("MODE", mode)) << mode;
}

TEST(SidecarSettings, ThatWouldBeMisunderstoodAreRefused) {
  struct Wrong {
    const char *name, *value;
  };
  for (auto [name, value] :
       std::vector<Wrong>{{"RULES", "{"},
                          {"RULES", "[]"},
                          {"RULES", R"({"defaultAction":"yes"})"},
                          {"RULES", R"({"egress":[{"action":"allow","target":"*"}]})"},
                          {"RULES", R"({"egress":[{"action":"permit","target":"a.b"}]})"},
                          {"MODE", "nft"},
                          {"MODE", "dns+"},
                          {"MODE", "off"},
                          {"POLICY_FILE", "here"},
                          {"HTTP_ADDR", "18080"},
                          {"HTTP_ADDR", ":0"},
                          {"HTTP_ADDR", ":70000"},
                          {"HTTP_ADDR", "a.test:80"},
                          {"HTTP_ADDR", "::1:80"},
                          {"DNS_UPSTREAM", ""},
                          {"DNS_UPSTREAM", "a.test"},
                          {"DENY_WEBHOOK", "ftp://a.test"},
                          {"MITMPROXY_TRANSPARENT", "1"}}) {
    auto settings = with(name, value);
    ASSERT_FALSE(settings) << name << "=" << value;
    EXPECT_THAT(settings.error().message, HasSubstr(std::string("OPENSANDBOX_EGRESS_") + name));
  }
  EXPECT_FALSE(with("SANDBOX_ID", std::string(257, 'x')));
}

TEST(SidecarSettings, WithoutAMeaningAreNamed) {
  for (const char* name :
       {"DNS_UPSTREAM_PROBE", "NAMESERVER_EXEMPT", "METRICS_EXTRA_ATTRS", "MITMPROXY_PORT", "TYPO"})
    EXPECT_THAT(with(name, "x")->warnings, Contains(HasSubstr(name)));
  EXPECT_THAT(with("DOH_BLOCKLIST", "1.1.1.1,a.test")->warnings, SizeIs(1));
  EXPECT_THAT(with("DOH_BLOCKLIST", "1.1.1.1,a.test")->resolvers, SizeIs(1));
}

TEST(AlwaysLists, AreLinesOfTargets) {
  auto rules = parse_always("# nobody\n\n a.test \r\n*.b.test\n10.0.0.0/8", "deny");
  ASSERT_TRUE(rules);
  EXPECT_THAT(*rules, SizeIs(3));
  for (const char* wrong : {"*", "http://a.test/", "a.test:80", "a.test b.test", "a.test # why"})
    EXPECT_FALSE(parse_always(wrong, "deny")) << wrong;
  EXPECT_THAT(parse_always("a.test\n*", "deny").error().message, HasSubstr("line 2"));
}

TEST(PolicyText, ReadsBackAsTheSame) {
  auto policy = parse_policy(R"({"defaultAction":"allow","egress":[{"action":"deny","target":"A.test"}]})");
  EXPECT_EQ(to_json(*parse_policy(to_file_text(*policy))), to_json(*policy));
  EXPECT_EQ(to_file_text({}), "{\n  \"egress\": [],\n  \"defaultAction\": \"deny\"\n}\n");
}

}  // namespace
}  // namespace osb::egress
