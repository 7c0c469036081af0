#include "server/config_engine.h"

#include <gmock/gmock.h>

namespace osb::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

Result<Config> parse(std::string text, Variables variables = {}) {
  Environment environment = [&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return parse_config("[runtime]\ntype = \"docker\"\n[docker]\n" + text, "test.toml", environment);
}

TEST(ConfigEngine, Addresses) {
  auto config = parse("host = \"tcp://127.0.0.1\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.tcp_host, "127.0.0.1");
  EXPECT_EQ(config->docker.tcp_port, 2375);
  config = parse("host = \"tcp://[::1]:99\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.tcp_host, "::1");
  EXPECT_EQ(config->docker.tcp_port, 99);
  config = parse("host = \"tcp://engine.example\"\ntls_ca = \"~/ca\"", {{"HOME", "/root"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.tcp_port, 2376);
  EXPECT_EQ(config->docker.tls_ca, "/root/ca");
  config = parse("host = \"unix:///run/x.sock\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.socket, "/run/x.sock");
  EXPECT_EQ(config->docker.tcp_host, "");
}

TEST(ConfigEngine, TheClearIsForLoopback) {
  auto refused = parse("host = \"tcp://192.0.2.1:2375\"");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("test.toml:4: docker.host: without TLS"));
}

TEST(ConfigEngine, AnotherHost) {
  EXPECT_FALSE(parse("")->docker.remote);
  EXPECT_FALSE(parse("host = \"tcp://127.0.0.1\"")->docker.remote);
  EXPECT_FALSE(parse("host = \"tcp://localhost\"")->docker.remote);
  EXPECT_TRUE(parse("host = \"tcp://127.0.0.1\"\nremote = true")->docker.remote) << "a tunnel";
  EXPECT_TRUE(parse("remote = true")->docker.remote) << "one that ends in a unix socket";
  std::string far = "host = \"tcp://192.0.2.1\"\ntls_ca = \"/ca\"\n";
  EXPECT_TRUE(parse(far)->docker.remote);
  EXPECT_FALSE(parse(far + "remote = false")->docker.remote) << "an address of this host";
  EXPECT_TRUE(parse("", {{"DOCKER_HOST", "tcp://far.example"}, {"DOCKER_CERT_PATH", "/c"}})->docker.remote);
  EXPECT_FALSE(parse("host = \"tcp://192.0.2.1\"\nremote = true")) << "in the clear all the same";
  for (const char* line : {"network_mode = \"host\"", "direct = true", "adopt = true"}) {
    auto refused = parse(far + line);
    ASSERT_FALSE(refused) << line;
    EXPECT_THAT(refused.error().message, HasSubstr("test.toml:6: docker."));
    EXPECT_THAT(refused.error().message, HasSubstr("docker.remote"));
    EXPECT_TRUE(parse(far + "remote = false\n" + line)) << line;
  }
}

TEST(ConfigEngine, AnImageForWhatPolicesContainers) {
  std::string image = "\n[egress]\nimage = \" registry.example/egress:1 \"";
  auto far = parse("remote = true" + image);
  ASSERT_TRUE(far) << far.error().message;
  EXPECT_EQ(far->egress.image, "registry.example/egress:1");
  EXPECT_THAT(far->warnings, IsEmpty());
  EXPECT_THAT(parse(image)->warnings, IsEmpty()) << "the engine may turn out to be on another host";
  for (const char* near : {"remote = false", "direct = true", "adopt = true", "network_mode = \"host\""})
    EXPECT_THAT(parse(near + image)->warnings,
                testing::Contains(HasSubstr("egress.image: it has no effect here")))
        << near;
}

TEST(ConfigEngine, Variables) {
  Variables all = {{"DOCKER_HOST", "tcp://engine.example:1234"},
                   {"DOCKER_TLS_VERIFY", "1"},
                   {"DOCKER_CERT_PATH", "/certs"}};
  auto config = parse("", all);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.tcp_host, "engine.example");
  EXPECT_EQ(config->docker.tcp_port, 1234);
  EXPECT_EQ(config->docker.tls_ca, "/certs/ca.pem");
  EXPECT_EQ(config->docker.tls_cert, "/certs/cert.pem");
  EXPECT_EQ(config->docker.tls_key, "/certs/key.pem");
  EXPECT_EQ(parse("socket = \"/run/x\"", all)->docker.tcp_host, "") << "the file wins";
  EXPECT_EQ(parse("host = \"unix:///run/x\"", all)->docker.tcp_host, "");
  config = parse("", {{"DOCKER_HOST", "tcp://h"}, {"DOCKER_TLS_VERIFY", "1"}, {"HOME", "/root"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.tls_ca, "/root/.docker/ca.pem");
  EXPECT_EQ(parse("", {{"DOCKER_HOST", "unix:///run/y"}})->docker.socket, "/run/y");
  EXPECT_EQ(parse("", {{"DOCKER_HOST", ""}})->docker.socket, DockerSection().socket);
}

TEST(ConfigEngine, WrongVariablesAreRefusedWhereTheyCount) {
  for (const char* wrong : {"ssh://me@there", "tcp://192.0.2.1:2375", "tcp://h:x", "nothing"}) {
    auto refused = parse("", {{"DOCKER_HOST", wrong}});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("DOCKER_HOST")) << wrong;
    EXPECT_TRUE(parse("socket = \"/run/x\"", {{"DOCKER_HOST", wrong}})) << wrong;
    EXPECT_TRUE(parse_config("", "test.toml", [&](const char* name) {
      return std::string_view(name) == "DOCKER_HOST" ? wrong : nullptr;
    })) << "a native server does not read it";
  }
}

TEST(ConfigEngine, TheHostsNetworkIsWarnedOf) {
  auto config = parse("network_mode = \"host\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("test.toml:4: docker.network_mode: sandboxes get")));
  EXPECT_THAT(parse("network_mode = \"bridge\"")->warnings, IsEmpty());
}

}  // namespace
}  // namespace osb::server
