#include "image/reference.h"

#include <gmock/gmock.h>

namespace osb::image {
namespace {

using ::testing::ElementsAre;

TEST(Reference, Names) {
  for (const char* good : {"debian", "debian:12", "a/b/c:1.0", "registry.example:5000/x@sha256:00", "A_1-2.3",
                           "[::1]:5000/x:1"}) {
    EXPECT_TRUE(check_name(good)) << good;
  }
  for (const char* bad : {"", "host", "-x", "/x", ".x", "a b", "a\nb", "\xc3\xbc", "a*", "[::1]", "[::1]/",
                          "[::1]:x/a", "[a]/b", "a/[::1]/b", "[::1]/-x", "[::1]/a[b]"})
    EXPECT_FALSE(check_name(bad)) << bad;
  EXPECT_FALSE(check_name(std::string(256, 'a')));
}

TEST(Reference, NamesOfFiles) {
  EXPECT_EQ(name_from_file("/x/debian.tar.gz"), "debian");
  EXPECT_EQ(name_from_file("root.tar.zst"), "root");
  EXPECT_EQ(name_from_file("dir/"), "dir");
  EXPECT_EQ(name_from_file("./a b.tar"), "a-b");
  EXPECT_EQ(name_from_file("-x.tgz"), "x");
  EXPECT_EQ(name_from_file("/"), "");
}

TEST(Reference, Patterns) {
  EXPECT_TRUE(matches("python:*", "python:3.11"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*/python:*", "registry.example/python:3"));
  EXPECT_TRUE(matches("a*b*c", "aXbXbc"));
  EXPECT_FALSE(matches("python:*", "pythons"));
  EXPECT_FALSE(matches("a*b", "aXbX"));
  EXPECT_FALSE(matches("", "a"));
  // No exponential search.
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(Reference, Candidates) {
  EXPECT_THAT(candidates("debian", {}), ElementsAre("debian", "debian:latest"));
  EXPECT_THAT(candidates("debian:latest", {}), ElementsAre("debian:latest", "debian"));
  EXPECT_THAT(candidates("debian:12", {}), ElementsAre("debian:12"));
  EXPECT_THAT(candidates("docker.io/library/debian:12", {}),
              ElementsAre("docker.io/library/debian:12", "debian:12", "library/debian:12"));
  std::map<std::string, std::string> aliases{
      {"python:*", "py"}, {"python:3.1*", "py31"}, {"python:3.11", "py311"}, {"*", "any:1"}};
  EXPECT_THAT(candidates("python:3.11", aliases), ElementsAre("python:3.11", "py311", "py311:latest"));
  EXPECT_THAT(candidates("python:3.12", aliases), ElementsAre("python:3.12", "py31", "py31:latest"));
  EXPECT_THAT(candidates("python:2", aliases), ElementsAre("python:2", "py", "py:latest"));
  EXPECT_THAT(candidates("node:20", aliases), ElementsAre("node:20", "any:1"));
}

TEST(Reference, TheInterpreterOfAnyHost) {
  for (const char* asked :
       {"opensandbox/code-interpreter:v1.0.2", "registry.example/opensandbox/code-interpreter",
        "registry.example:5000/opensandbox/code-interpreter:latest",
        "localhost/opensandbox/code-interpreter:1", "opensandbox/code-interpreter@sha256:0123"}) {
    EXPECT_THAT(candidates(asked, {}), testing::Contains("opensandbox/code-interpreter")) << asked;
  }
  for (const char* asked : {"opensandbox/code-interpreter-2", "x/opensandbox/code-interpreter",
                            "code-interpreter", "registry.example/a/opensandbox/code-interpreter"}) {
    EXPECT_THAT(candidates(asked, {}), testing::Not(testing::Contains("opensandbox/code-interpreter")))
        << asked;
  }
}

}  // namespace
}  // namespace osb::image
