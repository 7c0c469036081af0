#include "server/config_runtime.h"

#include <gmock/gmock.h>

namespace osb::server {
namespace {

using testing::HasSubstr;

const char* nothing(const char*) { return nullptr; }

Result<Config> parse(std::string_view text) { return parse_config(text, "f", nothing); }

std::string refused(std::string_view text) {
  auto config = parse(text);
  return config ? "" : config.error().message;
}

TEST(ConfigRuntime, OneRuntimeUnlessMoreAreNamed) {
  auto config = parse("");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->standard_runtime(), "native");
  EXPECT_TRUE(config->offers("native"));
  EXPECT_FALSE(config->offers("docker"));
  EXPECT_FALSE(config->offers("runsc"));
  EXPECT_EQ(config->runtime_for("python:3.12"), "");
}

TEST(ConfigRuntime, TheFirstRuleThatFits) {
  auto config = parse(
      "[runtime]\nalso = [\"runsc\", \"docker\"]\nrules = [\n"
      "  { image = \"registry.example/safe/*\", runtime = \"native\" },\n"
      "  { image = \"registry.example/*\", runtime = \"runsc\" },\n"
      "  { image = \"*\", runtime = \"docker\" },\n]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->runtime_for("registry.example/safe/a:1"), "native");
  EXPECT_EQ(config->runtime_for("registry.example/other"), "runsc");
  EXPECT_EQ(config->runtime_for("host"), "docker");
}

std::string with_rule(const std::string& pattern, const std::string& registry, const std::string& image) {
  auto config = parse("[runtime]\nalso = [\"runsc\"]\nrules = [{ image = \"" + pattern +
                      "\", runtime = \"runsc\" }]\n[registry]\ndefault = \"" + registry + "\"\n");
  return config ? config->runtime_for(image) : config.error().message;
}

TEST(ConfigRuntime, ARuleIsForAnImageHoweverItIsWritten) {
  struct Case {
    const char *pattern, *image;
  };
  for (auto [pattern, image] : {Case{"untrusted/*", "untrusted/x"},
                                {"untrusted/*", "docker.io/untrusted/x"},
                                {"untrusted/*", "index.docker.io/untrusted/x:1"},
                                {"untrusted/*", "DOCKER.IO/untrusted/x"},
                                {"untrusted/x", "docker.io/untrusted/x:latest"},
                                {"untrusted/x:latest", "untrusted/x"},
                                {"docker.io/untrusted/*", "untrusted/x"},
                                {"index.docker.io/untrusted/*", "untrusted/x:2"},
                                {"python:*", "docker.io/library/python:3.12"},
                                {"python:*", "library/python"},
                                {"docker.io/library/python:*", "python:3.12"},
                                {"docker.io/python", "python"},
                                {"host", "docker.io/library/host:latest"},
                                {"Registry.Example/team/*", "registry.example/team/x"},
                                {"registry.example/team/*", "Registry.Example/team/x"},
                                {"Local/Name", "Local/Name"},
                                {"*", "anything at all"}})
    EXPECT_EQ(with_rule(pattern, "docker.io", image), "runsc") << pattern << " " << image;
  for (auto [pattern, image] :
       {Case{"untrusted/*", "registry.example/untrusted/x"},
        {"untrusted/x", "untrusted/x:1"},
        {"python:*", "registry.example/library/python:3"},
        {"opensandbox/code-interpreter", "registry.example/opensandbox/code-interpreter"},
        {"library/*", "other/x"},
        {"local/name", "Local/Name"}})
    EXPECT_EQ(with_rule(pattern, "docker.io", image), "") << pattern << " " << image;
  // Another default registry.
  EXPECT_EQ(with_rule("team/*", "registry.example", "registry.example/team/x"), "runsc");
  EXPECT_EQ(with_rule("registry.example/*", "registry.example", "x"), "runsc");
  EXPECT_EQ(with_rule("team/*", "registry.example", "docker.io/team/x"), "");
  EXPECT_EQ(with_rule("docker.io/python:*", "registry.example", "docker.io/library/python:3"), "runsc");
}

TEST(ConfigRuntime, RulesAreReadWhole) {
  for (const char* rules :
       {"1", "[1]", "[{ image = \"a\" }]", "[{ image = \"a\", runtime = \"podman\" }]",
        "[{ image = \"\", runtime = \"native\" }]", "[{ image = 1, runtime = \"native\" }]",
        "[{ image = \"a\", runtime = \"native\", more = 1 }]"}) {
    EXPECT_THAT(refused(std::string("[runtime]\nrules = ") + rules), HasSubstr("f:2: runtime.rules: "))
        << rules;
  }
  EXPECT_THAT(refused("[runtime]\nrules = [{ image = \"a\", runtime = \"runsc\" }]"),
              HasSubstr("one names runsc, which this server does not offer; write also = [\"runsc\"]"));
  EXPECT_THAT(refused("[runtime]\nalso = [\"podman\"]"), HasSubstr("f:2: runtime.also: "));
}

TEST(ConfigRuntime, WithGvisorNothingLessIsOffered) {
  auto config = parse("[secure_runtime]\ntype = \"gvisor\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->standard_runtime(), "runsc");
  EXPECT_FALSE(config->offers("native"));
  auto both = parse("[runtime]\nalso = [\"native\"]\n[secure_runtime]\ntype = \"gvisor\"");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_TRUE(both->offers("native"));
  EXPECT_THAT(refused("[runtime]\nrules = [{ image = \"a\", runtime = \"native\" }]\n"
                      "[secure_runtime]\ntype = \"gvisor\""),
              HasSubstr("one names native"));
}

TEST(ConfigRuntime, AnEngineIsToldByName) {
  constexpr char kDocker[] = "[runtime]\ntype = \"docker\"\n[secure_runtime]\n";
  auto named = parse(std::string(kDocker) + "type = \"gvisor\"\ndocker_runtime = \"runsc-kvm\"");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->standard_runtime(), "docker");
  EXPECT_EQ(named->secure.docker_runtime, "runsc-kvm");
  EXPECT_FALSE(named->offers("native")) << "it is isolated less";
  auto other = parse(std::string(kDocker) + "type = \"kata\"\nk8s_runtime_class = \"kata-qemu\"");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->secure.docker_runtime, "kata-runtime");
  EXPECT_THAT(refused(std::string(kDocker) + "type = \"gvisor\""), HasSubstr("it needs docker_runtime"));
  EXPECT_THAT(refused(std::string(kDocker) + "type = \"firecracker\"\nk8s_runtime_class = \"kata-fc\""),
              HasSubstr("no Docker engine starts containers with Firecracker"));
}

TEST(ConfigRuntime, AnEngineThatIsOnlyOfferedIsToldToo) {
  constexpr char kAlso[] = "[runtime]\nalso = [\"docker\"]\n[secure_runtime]\n";
  auto config = parse(std::string(kAlso) + "type = \"gvisor\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->standard_runtime(), "runsc");
  EXPECT_EQ(config->secure.docker_runtime, "runsc");
  auto named = parse(std::string(kAlso) + "type = \"gvisor\"\ndocker_runtime = \"runsc-kvm\"");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->secure.docker_runtime, "runsc-kvm");
  EXPECT_EQ(parse("[runtime]\nalso = [\"docker\"]")->secure.docker_runtime, "");
  EXPECT_EQ(parse("[secure_runtime]\ntype = \"gvisor\"")->secure.docker_runtime, "") << "no engine";
}

TEST(ConfigRuntime, WhatCannotBeHadIsRefused) {
  EXPECT_THAT(refused("[secure_runtime]\ntype = \"kata\""), HasSubstr("boots no virtual machines"));
  EXPECT_THAT(refused("[secure_runtime]\ntype = \"firecracker\""),
              HasSubstr("firecracker needs k8s_runtime_class"));
  EXPECT_THAT(refused("[secure_runtime]\ntype = \"firecracker\"\nk8s_runtime_class = \"kata-fc\""),
              HasSubstr("boots no virtual machines"));
  EXPECT_THAT(refused("[secure_runtime]\ndocker_runtime = \"runsc\""), HasSubstr("no effect without a type"));
  EXPECT_THAT(refused("[secure_runtime]\nk8s_runtime_class = \"gvisor\""),
              HasSubstr("no effect without a type"));
  EXPECT_THAT(refused("[secure_runtime]\ntype = \"nabla\""), HasSubstr("must be gvisor, kata, firecracker"));
  EXPECT_THAT(refused("[secure_runtime]\nrunsc = \"runsc\""), HasSubstr("must be an absolute path"));
  EXPECT_THAT(refused("[secure_runtime]\nplatform = \"kvm\""), HasSubstr("must be systrap or ptrace"));
}

}  // namespace
}  // namespace osb::server
