#include "cli/host_values.h"

#include <gmock/gmock.h>

namespace osb::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

server::Config parse(const std::string& text) {
  auto config = server::parse_config(text, "config.toml", [](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(config) << config.error().message;
  return config.value_or(server::Config());
}

TEST(HostValues, Fine) {
  EXPECT_TRUE(check_host_values(parse(""), true));
  EXPECT_TRUE(check_host_values(parse("[native]\nuser = \"opensandbox\""), true)) << "needs no account";
  EXPECT_TRUE(check_host_values(parse("[native]\nuser = \"nosuchuser\""), false)) << "nobody changes to it";
  EXPECT_TRUE(check_host_values(parse("[native]\nhost_paths = [\"/\"]\n[native.images]\nall = \"/\""), true));
}

TEST(HostValues, MistakesHaveAPlaceAndARemedy) {
  struct Case {
    const char *toml, *place, *cause;
  };
  for (auto [toml, place, cause] :
       {Case{"[native]\nuser = \"nosuchuser\"", "config.toml:2: native.user: ", "no account \"nosuchuser\""},
        {"[native]\nuser = \"root\"", "config.toml:2: native.user: ", "root"},
        {"[native.images]\na = \"/\"\nb = \"/no/such/directory\"",
         "config.toml:3: native.images.b: ", "/no/such/directory"},
        {"[native.images]\nb = \"/etc/passwd\"", "config.toml:2: native.images.b: ", "not a directory"},
        {"[native]\nhost_paths = [\"/no/such/path\"]",
         "config.toml:2: native.host_paths: ", "/no/such/path"}}) {
    auto checked = check_host_values(parse(toml), true);
    ASSERT_FALSE(checked) << toml;
    EXPECT_THAT(checked.error().message, StartsWith(place));
    EXPECT_THAT(checked.error().message, HasSubstr(cause));
    EXPECT_THAT(checked.error().message, HasSubstr("; "));
  }
}

}  // namespace
}  // namespace osb::cli
