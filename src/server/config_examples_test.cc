#include "server/config_examples.h"

#include <gmock/gmock.h>

#include "server/config.h"

namespace osb::server {
namespace {

using testing::HasSubstr;

Result<Config> parse(std::string_view text) {
  return parse_config(text, "test.toml", [](const char*) -> const char* { return nullptr; });
}

TEST(ConfigExamples, EachLoads) {
  EXPECT_EQ(config_example_names().size(), 5u);
  for (std::string_view name : config_example_names()) {
    auto config = parse(*config_example(name));
    ASSERT_TRUE(config) << name << ": " << config.error().message;
    EXPECT_EQ(config->effective_runtime(), RuntimeType::native) << name;
    EXPECT_TRUE(check_exposure(*config)) << name;
  }
  auto unknown = config_example("podman");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("native, docker, docker-zh, k8s, k8s-zh"));
}

// Every commented key of the skeleton is one that the server reads, and the value shown is accepted.
TEST(ConfigExamples, TheSkeletonIsValidWithEveryKeyTurnedOn) {
  EXPECT_TRUE(parse(*config_example("")));
  std::string on;
  std::string_view text = *config_example("");
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    bool key = line.starts_with("# ") && line.find(" = ") != line.npos && line.find('.') > line.find(" = ");
    on.append(key ? line.substr(2) : line).append("\n");
  }
  auto config = parse(on);
  ASSERT_TRUE(config) << config.error().message << "\n" << on;
  EXPECT_EQ(config->server.max_sandbox_timeout_seconds, 86400);
  EXPECT_EQ(config->native.images.size(), 1u);
}

}  // namespace
}  // namespace osb::server
