#include "cli/values.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace osb::cli {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Duration, Parses) {
  EXPECT_EQ(*parse_duration("90"), milliseconds(90'000));
  EXPECT_EQ(*parse_duration("90s"), milliseconds(90'000));
  EXPECT_EQ(*parse_duration("10m"), milliseconds(600'000));
  EXPECT_EQ(*parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(*parse_duration("250ms"), milliseconds(250));
  EXPECT_EQ(*parse_duration("1m500ms"), milliseconds(60'500));
}

TEST(Duration, Refuses) {
  for (const char* text : {"", "0", "0s", "-1", "1.5s", "s", "10x", "10 s", "1h-30m", "99999999999",
                           "4000000000d", "m10", "1000d", "10S"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Duration, SaysThatItIsTooLong) {
  for (const char* text : {"100000h", "367d", "366d1ms", "99999999"}) {
    auto got = parse_duration(text);
    ASSERT_FALSE(got) << text;
    EXPECT_THAT(got.error().message, HasSubstr("longer than 366d")) << text;
  }
  EXPECT_EQ(*parse_duration("366d"), std::chrono::hours(366 * 24));
}

TEST(Duration, Prints) {
  EXPECT_EQ(print_duration(milliseconds(34)), "34 ms");
  EXPECT_EQ(print_duration(milliseconds(1250)), "1.2 s");
  EXPECT_EQ(print_duration(milliseconds(10'000)), "10s");
  EXPECT_EQ(print_duration(milliseconds(5'400'000)), "1h30m");
}

TEST(VariableText, ParsesAndInherits) {
  EXPECT_EQ(*parse_variable("A=b"), Variable("A", "b"));
  EXPECT_EQ(*parse_variable("A="), Variable("A", ""));
  EXPECT_EQ(*parse_variable("A=b=c d"), Variable("A", "b=c d"));
  ::setenv("OSB_VALUES_TEST", "own", 1);
  EXPECT_EQ(*parse_variable("OSB_VALUES_TEST"), Variable("OSB_VALUES_TEST", "own"));
  ::unsetenv("OSB_VALUES_TEST");
  EXPECT_THAT(parse_variable("OSB_VALUES_TEST").error().message, HasSubstr("is not set here"));
  EXPECT_FALSE(parse_variable("=x"));
  EXPECT_FALSE(parse_variable(""));
}

struct AddressCase {
  const char *text, *authority, *prefix;
};

TEST(VolumeText, ParsesAndRefuses) {
  auto named = parse_volume("cache:/data");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->source, "cache");
  EXPECT_EQ(named->path, "/data");
  EXPECT_FALSE(named->read_only);
  EXPECT_TRUE(parse_volume("/srv/a:/b:ro")->read_only);
  EXPECT_FALSE(parse_volume("/srv/a:/b:rw")->read_only);
  for (const char* text : {"", "a", "a:", ":/b", "a:b", "a:/b:", "a:/b:x", "a:/b:ro:x", "/a"})
    EXPECT_FALSE(parse_volume(text)) << text;
}

TEST(Address, Parses) {
  for (auto [text, authority, prefix] : {AddressCase{"localhost:8080", "localhost:8080", ""},
                                         {"http://10.0.0.1", "10.0.0.1:80", ""},
                                         {"HTTP://h:1/", "h:1", ""},
                                         {" h:1 ", "h:1", ""},
                                         {"[::1]:9000/a/b/", "[::1]:9000", "/a/b"},
                                         {"[::1]", "[::1]:80", ""}}) {
    auto got = parse_server_address(text);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->authority(), authority);
    EXPECT_EQ(got->prefix, prefix);
  }
}

TEST(Address, Refuses) {
  for (const char* text : {"", ":80", "h:", "h:0", "h:65536", "h:8x", "h:-1", "[::1", "[::1]x", "[::1]:",
                           "https://", "ftp://h", "a b", "user@h", "::1", "h/p?q", "http://", "/path"}) {
    EXPECT_FALSE(parse_server_address(text)) << text;
  }
  auto secure = parse_server_address("https://h/p");
  ASSERT_TRUE(secure);
  EXPECT_TRUE(secure->tls);
  EXPECT_EQ(secure->authority(), "h:443");
  EXPECT_EQ(parse_server_address("HTTPS://h:1")->port, 1);
  EXPECT_FALSE(parse_server_address("http://h")->tls);
}

TEST(Dashes, KeepTheCommandWordByWord) {
  const char* argv[] = {"osb", "run", "host", "--", "git", "log", "--", "-x", "--help"};
  auto split = split_at_dashes(9, argv);
  EXPECT_THAT(split.ours, ElementsAre("run", "host"));
  EXPECT_THAT(*split.theirs, ElementsAre("git", "log", "--", "-x", "--help"));
  EXPECT_FALSE(split_at_dashes(3, argv).theirs);
  EXPECT_TRUE(split_at_dashes(4, argv).theirs->empty());
}

TEST(Bytes, Table) {
  for (const auto& [text, bytes] : {std::pair{"1", 1ull},
                                    {"512Mi", 512ull << 20},
                                    {"8G", 8'000'000'000ull},
                                    {"2Ki", 2048ull},
                                    {"3k", 3000ull},
                                    {"1Ti", 1ull << 40}}) {
    EXPECT_EQ(parse_bytes(text).value_or(0), bytes) << text;
  }
  for (const char* bad : {"", "0", "-1", "1.5G", "G", "1 G", "1GB", "1Gib", "1x", "99999999999T", "1m"})
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  EXPECT_EQ(print_bytes(999), "999 B");
  EXPECT_EQ(print_bytes(1500), "1.5 kB");
  EXPECT_EQ(print_bytes(999'960), "1.0 MB");
  EXPECT_EQ(print_bytes(96'000'000), "96.0 MB");
}

}  // namespace
}  // namespace osb::cli
