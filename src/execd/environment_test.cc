#include "execd/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace osb::execd {
namespace {

Environment sample() {
  Environment env;
  env.set("HOME", "/root");
  env.set("A", "1");
  env.set("EMPTY", "");
  return env;
}

TEST(Environment, process_credentials_are_left_out) {
  ::setenv("EXECD_ACCESS_TOKEN", "secret", 1);
  ::setenv("JUPYTER_TOKEN", "secret", 1);
  ::setenv("OSB_TEST_PLAIN", "a=b", 1);
  Environment env = Environment::of_process();
  EXPECT_EQ(env.find("EXECD_ACCESS_TOKEN"), nullptr);
  EXPECT_EQ(env.find("JUPYTER_TOKEN"), nullptr);
  EXPECT_EQ(env.get("OSB_TEST_PLAIN"), "a=b");
  ::unsetenv("EXECD_ACCESS_TOKEN");
  ::unsetenv("JUPYTER_TOKEN");
}

TEST(Environment, default_does_not_replace_an_empty_value) {
  Environment env = sample();
  env.set_default("EMPTY", "x");
  env.set_default("NEW", "x");
  EXPECT_EQ(env.get("EMPTY"), "");
  EXPECT_EQ(env.get("NEW"), "x");
}

TEST(ExpandVariables, forms) {
  Environment env = sample();
  auto expand = [&](std::string_view text) {
    return expand_variables(text, env, Undefined::error).value_or("<error>");
  };
  EXPECT_EQ(expand("$HOME/x"), "/root/x");
  EXPECT_EQ(expand("${HOME}x"), "/rootx");
  EXPECT_EQ(expand("a$A$A"), "a11");
  EXPECT_EQ(expand("$EMPTY|"), "|");
  EXPECT_EQ(expand("plain"), "plain");
  EXPECT_EQ(expand("$"), "$");
  EXPECT_EQ(expand("a$/b"), "a$/b");
  EXPECT_EQ(expand("${}x"), "x");
  EXPECT_EQ(expand("${HOME"), "HOME");
  EXPECT_EQ(expand("$1abc$?${#}"), "abc");
  EXPECT_EQ(expand("$$A"), "A");
  EXPECT_EQ(expand("/$NOPE"), "<error>");
  EXPECT_EQ(expand("/${NO PE}"), "<error>");
}

TEST(ExpandVariables, undefined) {
  Environment env = sample();
  std::string missing;
  EXPECT_FALSE(expand_variables("x${NOPE}", env, Undefined::error, &missing));
  EXPECT_EQ(missing, "NOPE");
  EXPECT_EQ(expand_variables("x${NOPE}y$NOPE", env, Undefined::empty), "xy");
  EXPECT_EQ(expand_variables("x${NOPE}y$NOPE$A", env, Undefined::keep), "x${NOPE}y$NOPE1");
}

}  // namespace
}  // namespace osb::execd
