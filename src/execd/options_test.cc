#include "execd/options.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(Options, forms_of_a_flag) {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"--port", "45000"}, Words{"-port", "45000"}, Words{"--port=45000"}, Words{"-port=45000"}}) {
    auto options = parse_options(words, {});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->port, 45000);
  }
  EXPECT_EQ(parse_options({}, {})->port, 44772);
  EXPECT_TRUE(parse_options({"--native"}, {})->native);
  auto container = parse_options({"--container=/opt/boot/hub"}, {});
  ASSERT_TRUE(container);
  EXPECT_TRUE(container->native);
  EXPECT_EQ(container->container, "/opt/boot/hub");
  EXPECT_FALSE(parse_options({"--container=hub"}, {}));
  EXPECT_EQ(parse_options({"--part=/a/b", "--part", "/c"}, {})->parts,
            (std::vector<std::string>{"/a/b", "/c"}));
  EXPECT_FALSE(parse_options({"--part=a"}, {}));
  auto shown = parse_options({"--container=/hub", "--shown=/a", "--shown=/b"}, {});
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->shown, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_FALSE(parse_options({"--shown=a"}, {}));
  auto handed = parse_options({"--secret=-"}, {});
  ASSERT_TRUE(handed);
  EXPECT_TRUE(handed->native);
  EXPECT_EQ(handed->secret, "-");
  EXPECT_FALSE(parse_options({"--secret=file"}, {}));
  EXPECT_TRUE(parse_options({"--join"}, {})->join);
  EXPECT_FALSE(parse_options({"--join"}, {})->native);
  auto given = parse_options({"--connections=0"}, {});
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->native);
  EXPECT_EQ(given->connections, 0);
  EXPECT_FALSE(parse_options({"--connections=-1"}, {}));
  EXPECT_FALSE(parse_options({"--connections=x"}, {}));
}

TEST(Options, a_secret_is_for_the_first_process_of_a_container) {
  auto given = parse_options({"--secret=/boot/secret"}, {});
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->native);
  EXPECT_EQ(given->secret, "/boot/secret");
  EXPECT_FALSE(parse_options({"--secret=secret"}, {}));
  EXPECT_FALSE(parse_options({"--secret="}, {}));
  EXPECT_EQ(parse_options({"--open-port=44772"}, {})->open_port, 44772);
  for (const char* wrong : {"--open-port=0", "--open-port=65536", "--open-port=x"})
    EXPECT_FALSE(parse_options({wrong}, {})) << wrong;
}

TEST(Options, words_behind_the_flags_are_ignored) {
  auto options = parse_options({"--log-level", "7", "tail", "-f", "/dev/null"}, {});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->log_level, 7);
  EXPECT_TRUE(parse_options({"--", "--nonsense"}, {}));
  EXPECT_TRUE(parse_options({"-"}, {}));
}

TEST(Options, environment_is_the_default_and_the_flag_wins) {
  Environment env;
  env.set("EXECD_ACCESS_TOKEN", "from-env");
  EXPECT_EQ(parse_options({}, env)->access_token, "from-env");
  EXPECT_EQ(parse_options({"--access-token=x"}, env)->access_token, "x");
  EXPECT_EQ(parse_options({"--access-token", "-x"}, env)->access_token, "-x");
}

TEST(Options, rejects) {
  Environment bad;
  bad.set("JUPYTER_HOST", "localhost:8888");
  EXPECT_FALSE(parse_options({}, bad));
  EXPECT_FALSE(parse_options({"--nope"}, {}));
  EXPECT_FALSE(parse_options({"--port"}, {}));
  EXPECT_FALSE(parse_options({"--port", "x"}, {}));
  EXPECT_FALSE(parse_options({"--port", "0"}, {}));
  EXPECT_FALSE(parse_options({"--port", "65536"}, {}));
  EXPECT_TRUE(parse_options({"--graceful-shutdown-timeout", "3s", "--jupyter-idle-poll-interval=50ms"}, {}));
}

}  // namespace
}  // namespace osb::execd
