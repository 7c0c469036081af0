#include "api/commit_request.h"

#include <gtest/gtest.h>

namespace osb::api {
namespace {

constexpr char kJson[] = "application/json";

TEST(CommitRequest, Everything) {
  auto body = decode_commit(
      kJson, R"({"sandboxId":"s","name":"n","config":{"env":{"A":"1"},"user":"u","workingDir":"/w",)"
             R"("entrypoint":["e"],"cmd":[],"labels":{"l":"m"},"exposedPorts":["80","53/udp"]}})");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->sandbox, "s");
  EXPECT_EQ(body->snapshot, "");
  EXPECT_EQ(body->env[0].second, "1");
  EXPECT_EQ(body->entrypoint, std::vector<std::string>{"e"});
  EXPECT_EQ(body->cmd, std::vector<std::string>());
  EXPECT_EQ(body->ports, (std::vector<std::string>{"80/tcp", "53/udp"}));
  auto least = decode_commit(kJson, R"({"snapshotId":"s","name":"n"})");
  ASSERT_TRUE(least);
  EXPECT_FALSE(least->user || least->cmd || least->entrypoint || least->workdir);
}

TEST(CommitRequest, Refused) {
  const std::string long_text(5000, 'x');
  const std::string cases[] = {"",
                               "[]",
                               "{}",
                               R"({"name":"n"})",
                               R"({"sandboxId":"s"})",
                               R"({"sandboxId":"s","snapshotId":"t","name":"n"})",
                               R"({"sandboxId":"","name":"n"})",
                               R"({"sandboxId":"s","name":"a\u0000"})",
                               R"({"sandboxId":"s","name":")" + long_text + "\"}",
                               R"({"sandboxId":"s","name":"n","config":[]})",
                               R"({"sandboxId":"s","name":"n","config":{"workingDir":"w"}})",
                               R"({"sandboxId":"s","name":"n","config":{"user":"a\u0000"}})",
                               R"({"sandboxId":"s","name":"n","config":{"env":{"A=":"1"}}})",
                               R"({"sandboxId":"s","name":"n","config":{"env":["A=1"]}})",
                               R"({"sandboxId":"s","name":"n","config":{"cmd":"x"}})",
                               R"({"sandboxId":"s","name":"n","config":{"cmd":["\u0000"]}})",
                               R"({"sandboxId":"s","name":"n","config":{"exposedPorts":["0"]}})",
                               R"({"sandboxId":"s","name":"n","config":{"exposedPorts":["65536"]}})",
                               R"({"sandboxId":"s","name":"n","config":{"exposedPorts":["80/"]}})",
                               R"({"sandboxId":"s","name":"n","config":{"exposedPorts":["80/http"]}})"};
  for (const std::string& text : cases) EXPECT_FALSE(decode_commit(kJson, text)) << text.substr(0, 100);
}

}  // namespace
}  // namespace osb::api
