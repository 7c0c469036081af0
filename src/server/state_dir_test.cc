#include <gtest/gtest.h>

#include <map>

#include "server/config.h"

namespace osb::server {
namespace {

TEST(StateDir, IsBelowTheHomeOfAnOrdinaryUser) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/ann"}};
  Environment environment = [&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  auto chosen = [&](std::string_view file, bool is_root) {
    return choose_state_dir(parse_config(file, "f", environment)->native, is_root, environment).value_or("");
  };
  EXPECT_EQ(chosen("", true), "/var/lib/opensandbox");
  EXPECT_EQ(chosen("", false), "/home/ann/.local/state/opensandbox");
  variables["XDG_STATE_HOME"] = "relative";
  EXPECT_EQ(chosen("", false), "/home/ann/.local/state/opensandbox");
  variables["XDG_STATE_HOME"] = "/state/ann";
  EXPECT_EQ(chosen("", false), "/state/ann/opensandbox");
  EXPECT_EQ(chosen("", true), "/var/lib/opensandbox") << "a service of the system";
  for (std::string directory : {"/srv/state", "/var/lib/opensandbox"}) {
    for (bool is_root : {false, true})
      EXPECT_EQ(chosen("[native]\nstate_dir = \"" + directory + "\"", is_root), directory);
  }
  variables.clear();
  EXPECT_EQ(chosen("", false), "") << "no place is an error";
}

}  // namespace
}  // namespace osb::server
