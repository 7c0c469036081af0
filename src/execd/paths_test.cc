#include "execd/paths.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"

namespace osb::execd {
namespace {

TEST(CleanPath, forms) {
  EXPECT_EQ(clean_path("/a/b", "/x"), "/a/b");
  EXPECT_EQ(clean_path("/a//b/./c/", "/x"), "/a/b/c");
  EXPECT_EQ(clean_path("/a/../../b", "/x"), "/b");
  EXPECT_EQ(clean_path("/", "/x"), "/");
  EXPECT_EQ(clean_path("..", "/"), "/");
  EXPECT_EQ(clean_path("a", "/x/y"), "/x/y/a");
  EXPECT_EQ(clean_path("../a", "/x/y"), "/x/a");
  EXPECT_EQ(clean_path("", "/x/y"), "/x/y");
  EXPECT_EQ(clean_path("a..b", "/"), "/a..b");
}

TEST(ExpandPath, tilde) {
  Environment env;
  EXPECT_FALSE(expand_path("~", env));
  env.set("HOME", "/home/u");
  EXPECT_EQ(expand_path("~", env), "/home/u");
  EXPECT_EQ(expand_path("~/x", env), "/home/u/x");
  EXPECT_EQ(expand_path("~u/x", env), "~u/x");
  EXPECT_EQ(expand_path("a/~", env), "a/~");
}

TEST(ExpandPath, missing_variable_is_named) {
  auto result = expand_path("/x/$NOPE/y", Environment());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::invalid_argument);
  EXPECT_NE(result.error().message.find("NOPE"), std::string::npos);
  EXPECT_FALSE(expand_path(std::string_view("/a\0b", 4), Environment()));
}

TEST(ResolvePath, an_existing_literal_name_wins) {
  char dir[] = "/tmp/osb-paths-XXXXXX";
  ASSERT_TRUE(::mkdtemp(dir));
  std::string file = std::string(dir) + "/a$b";
  ASSERT_TRUE(write_file(file, "x", O_CREAT));
  Environment env;
  EXPECT_EQ(resolve_path(file, env, "/"), file);
  EXPECT_FALSE(resolve_path(file + "c", env, "/"));
  ::unlink(file.c_str());
  ::rmdir(dir);
}

TEST(PathParts, base_and_parent) {
  EXPECT_EQ(base_name("/a/b"), "b");
  EXPECT_EQ(base_name("/"), "");
  EXPECT_EQ(parent_path("/a/b"), "/a");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
}

}  // namespace
}  // namespace osb::execd
