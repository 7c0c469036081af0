#include "docker/inherited.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "docker/container_config.h"

namespace osb::docker {
namespace {

using Labels = std::map<std::string, std::string>;
constexpr char kId[] = "334de8da-ebfb-427e-9478-23aeabe8824e";

Container container_with(Labels labels) {
  labels[kIdLabel] = kId;
  Container out;
  out.id = "c1";
  out.labels = std::move(labels);
  out.reference = "team/app:1";
  out.created = "2026-01-02T03:04:05.123456789Z";
  out.command = {"sleep", "9"};
  return out;
}

Image image_with(Labels labels, std::vector<std::string> env = {}) {
  Image out;
  out.labels = std::move(labels);
  out.env = std::move(env);
  return out;
}

TEST(Inherited, WhatLabelsSay) {
  auto found =
      inherited_from(container_with({{"opensandbox.io/expires-at", "2026-01-02T04:00:00.000000+00:00"},
                                     {"opensandbox.io/platform-os", "linux"},
                                     {"opensandbox.io/platform-arch", "arm64"},
                                     {"opensandbox.io/http-port", "40001"},
                                     {"team", "red"},
                                     {"maintainer", "somebody"},
                                     {"stage", "of the request"},
                                     {"com.docker.compose.project", "x"}}),
                     image_with({{"maintainer", "somebody"}, {"stage", "of the image"}}));
  EXPECT_EQ(found.id, kId);
  EXPECT_EQ(found.image, "team/app:1");
  EXPECT_EQ(found.platform, "linux/arm64");
  EXPECT_EQ(found.entrypoint, (std::vector<std::string>{"sleep", "9"}));
  EXPECT_EQ(found.metadata, (Labels{{"team", "red"}, {"stage", "of the request"}}));
  EXPECT_EQ(found.created, *parse_time("2026-01-02T03:04:05.123456Z"));
  EXPECT_EQ(found.expires, *parse_time("2026-01-02T04:00:00Z"));
}

TEST(Inherited, WithoutAnExpiryItStays) {
  EXPECT_FALSE(inherited_from(container_with({{"opensandbox.io/manual-cleanup", "true"}}), {}).expires);
  EXPECT_FALSE(inherited_from(container_with({}), {}).expires);
  for (const char* odd : {"", "soon", "2026-13-01T00:00:00Z", "1767323045"})
    EXPECT_FALSE(inherited_from(container_with({{"opensandbox.io/expires-at", odd}}), {}).expires) << odd;
}

TEST(Inherited, VariablesThatItsImageDoesNotHave) {
  Container container = container_with({});
  container.env = {"PATH=/bin", "TOKEN=a=b", "HOME=/here", "EMPTY=", "odd"};
  EXPECT_EQ(
      inherited_from(container, image_with({}, {"PATH=/bin", "HOME=/root"})).env,
      (std::vector<std::pair<std::string, std::string>>{{"TOKEN", "a=b"}, {"HOME", "/here"}, {"EMPTY", ""}}));
}

TEST(Inherited, WhetherASidecarHasItsNetwork) {
  EXPECT_EQ(inherited_egress(container_with({})), std::nullopt);
  EXPECT_EQ(inherited_egress(container_with({{"opensandbox.io/egress-auth-token", "t"}})), "t");
  Container container = container_with({});
  container.network_mode = "bridge";
  EXPECT_EQ(inherited_egress(container), std::nullopt);
  container.network_mode = "container:sandbox-egress-x";
  EXPECT_EQ(inherited_egress(container), "") << "who may change its policy is not said";
}

TEST(Inherited, WhoseTheyAre) {
  EXPECT_TRUE(is_of_others({{kIdLabel, kId}}));
  EXPECT_FALSE(is_of_others({}));
  EXPECT_FALSE(is_of_others({{kIdLabel, ""}})) << "an image's label that was blanked";
  EXPECT_FALSE(is_of_others({{kIdLabel, kId}, {kOwnerLabel, "another service"}}));
  EXPECT_FALSE(is_of_others({{kIdLabel, kId}, {kHandleLabel, "h"}}));
  EXPECT_FALSE(is_of_others({{kSidecarLabel, kId}})) << "a sidecar is no sandbox";
}

TEST(Inherited, EveryIdHasAHandle) {
  EXPECT_EQ(handle_of(kId), kId);
  std::string made = handle_of("my-sandbox.1");
  EXPECT_TRUE(is_uuid(made)) << made;
  EXPECT_EQ(made[14], '8') << "neither an id nor a handle of ours";
  EXPECT_EQ(made, handle_of("my-sandbox.1"));
  EXPECT_NE(made, handle_of("my-sandbox.2"));
}

TEST(Inherited, Volumes) {
  constexpr char kLabel[] = "opensandbox.io/volume-managed-by";
  EXPECT_EQ(inherited_volumes({{kLabel, R"(["a","b"])"}}), (std::vector<std::string>{"a", "b"}));
  for (const char* odd : {"", "server", "{}", "[1]", "[\"a\""})
    EXPECT_TRUE(inherited_volumes({{kLabel, odd}}).empty()) << odd;
  EXPECT_TRUE(inherited_volumes({}).empty());
}

TEST(Inherited, Ends) {
  using Kind = runtime::End::Kind;
  Container container = container_with({});
  container.status = "exited";
  container.exit_code = 3;
  EXPECT_EQ(inherited_end(container).kind, Kind::exited);
  EXPECT_EQ(inherited_end(container).number, 3);
  container.out_of_memory = true;
  EXPECT_EQ(inherited_end(container).kind, Kind::out_of_memory);
  container = container_with({});
  container.status = "created";
  EXPECT_EQ(inherited_end(container).kind, Kind::lost);
}

}  // namespace
}  // namespace osb::docker
