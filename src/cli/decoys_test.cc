#include "cli/decoys.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace osb::cli {
namespace {

constexpr std::string_view kTable =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01  1234 /run/osb-1/abc.control\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01  1235 /run/osb-1/abc.api\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01  1236 @abstract\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03  1237\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01  1238 /run/with blank\n";

TEST(Decoys, FindsSocketsWithPaths) {
  std::vector<std::string> all = {"/run/osb-1/abc.api", "/run/osb-1/abc.control", "/run/with blank"};
  EXPECT_EQ(socket_paths(kTable, 10), all);
  EXPECT_EQ(socket_paths(kTable, 1).size(), 1u);
  EXPECT_TRUE(socket_paths("", 10).empty());
}

TEST(Decoys, KnowsWhatSandboxesAreCalled) {
  std::vector<std::string> names = {"/run/osb-1", "abc"};
  EXPECT_EQ(sandbox_names(socket_paths(kTable, 10)), names);
  EXPECT_TRUE(sandbox_names({"/run/x", "/run/.api", "/.control", "/run/api"}).empty());
}

TEST(Decoys, EveryAttemptThatNeedsATargetHasOne) {
  auto decoys = Decoys::create();
  ASSERT_TRUE(decoys) << decoys.error().message;
  for (const char* attempt : {"canary", "host_processes", "host_ipc", "host_loopback", "abstract_sockets",
                              "control_sockets", "names"})
    EXPECT_FALSE(decoys->arguments_for(attempt, "id", "").empty()) << attempt;
  EXPECT_TRUE(decoys->arguments_for("mount", "id", "").empty());
  EXPECT_EQ(decoys->arguments_for("names", "id", "")[0], "6964");
  std::string canary = decoys->arguments_for("canary", "", "")[0];
  EXPECT_EQ(::access(canary.c_str(), R_OK), 0);
  {
    auto gone = std::move(*decoys);
  }
  EXPECT_NE(::access(canary.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace osb::cli
