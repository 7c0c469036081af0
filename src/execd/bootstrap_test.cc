#include "execd/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::execd {
namespace {

using testing::ElementsAre;

Environment with(std::vector<std::pair<std::string, std::string>> variables) {
  Environment env;
  for (auto& [name, value] : variables) env.set(std::move(name), std::move(value));
  return env;
}

const std::vector<std::string> kArgv = {"sleep", "1 000"};

TEST(Bootstrap, WithoutVariablesNothingIsChanged) {
  EXPECT_THAT(*bootstrap(kArgv, {}), ElementsAre("sleep", "1 000"));
  Environment empty = with({{"EXECD_BOOTSTRAP_PRE_SCRIPT", ""}, {"BOOTSTRAP_CMD", ""}, {"PATH", "/none"}});
  EXPECT_THAT(*bootstrap(kArgv, empty), ElementsAre("sleep", "1 000")) << "no shell is looked for";
  EXPECT_THAT(*bootstrap(kArgv, with({{"BOOTSTRAP_SHELL", "/bin/x"}})), ElementsAre("sleep", "1 000"));
  EXPECT_THAT(*bootstrap({"-c"}, {}), ElementsAre("-c")) << "an error of its own";
}

TEST(Bootstrap, ALineIsForAShell) {
  Environment env = with({{"BOOTSTRAP_CMD", "a && b"}, {"BOOTSTRAP_SHELL", "/bin/x"}});
  EXPECT_THAT(*bootstrap(kArgv, env), ElementsAre("/bin/x", "-c", "a && b"));
  EXPECT_THAT(*bootstrap({"-c", "a", "b"}, with({{"BOOTSTRAP_SHELL", "x"}})), ElementsAre("x", "-c", "a b"));
  EXPECT_THAT(*bootstrap({"-c", "a"}, env), ElementsAre("/bin/x", "-c", "a && b")) << "the variable counts";
}

TEST(Bootstrap, AScriptComesFirst) {
  Environment env = with({{"EXECD_BOOTSTRAP_PRE_SCRIPT", "/p"}, {"BOOTSTRAP_SHELL", "x"}});
  EXPECT_THAT(*bootstrap(kArgv, env), ElementsAre("x", "-c", testing::_, "x", "sleep", "1 000"));
  env.set("BOOTSTRAP_CMD", "a");
  EXPECT_THAT(*bootstrap(kArgv, env), ElementsAre("x", "-c", testing::_, "x", "x", "-c", "a"));
}

TEST(Bootstrap, WithoutAShell) {
  for (const char* name : {"EXECD_BOOTSTRAP_PRE_SCRIPT", "BOOTSTRAP_CMD"}) {
    auto refused = bootstrap(kArgv, with({{name, "x"}, {"PATH", "/none"}}));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(name), std::string::npos);
    EXPECT_NE(refused.error().message.find("BOOTSTRAP_SHELL"), std::string::npos);
  }
}

}  // namespace
}  // namespace osb::execd
