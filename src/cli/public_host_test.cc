#include "cli/public_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace osb::cli {
namespace {

std::string host_of(const std::string& server_host, bool in_container, const std::string& eip = "",
                    const std::string& host_ip = "10.1.2.3") {
  server::Config config;
  config.server.host = server_host;
  config.server.eip = eip;
  config.docker.host_ip = host_ip;
  return public_host(config, in_container);
}

TEST(PublicHost, OfAServerInAContainer) {
  for (const char* host : {"", "0.0.0.0", "::", "127.0.0.1", "127.1.2.3", "localhost", "::1"})
    EXPECT_EQ(host_of(host, true), "10.1.2.3") << host;
  EXPECT_EQ(host_of("192.0.2.7", true), "192.0.2.7") << "somebody has chosen it";
  EXPECT_EQ(host_of("127.0.0.1", true, "", ""), "127.0.0.1") << "nobody has said what the host's is";
  EXPECT_EQ(host_of("127.0.0.1", true, "sandboxes.example:8080"), "sandboxes.example");
}

TEST(PublicHost, OfAServerOnTheHost) {
  for (const char* host : {"127.0.0.1", "localhost", "192.0.2.7"}) EXPECT_EQ(host_of(host, false), host);
  EXPECT_NE(host_of("0.0.0.0", false), "10.1.2.3") << "it is for servers in containers";
}

TEST(PublicHost, SignsOfAContainer) {
  char name[] = "/tmp/osb-root-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string root = name;
  auto nothing = [](const char*) -> const char* { return nullptr; };
  EXPECT_FALSE(is_in_container(nothing, root));
  EXPECT_FALSE(is_in_container([](const char*) { return ""; }, root));
  EXPECT_TRUE(is_in_container(
      [](const char* variable) { return std::string_view(variable) == "container" ? "podman" : nullptr; },
      root));
  std::filesystem::create_directory(root + "/run");
  for (const char* file : {"/.dockerenv", "/run/.containerenv"}) {
    std::ofstream(root + file).close();
    EXPECT_TRUE(is_in_container(nothing, root)) << file;
    std::filesystem::remove(root + file);
  }
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace osb::cli
