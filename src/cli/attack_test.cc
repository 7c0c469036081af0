#include "cli/attack.h"

#include <gtest/gtest.h>

namespace osb::cli {
namespace {

TEST(Attempts, Parses) {
  auto got = parse_attempts("mount\tmount a file system\nptrace\t attach to PID 1 \n\n");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 2u);
  EXPECT_EQ((*got)[0].name, "mount");
  EXPECT_EQ((*got)[1].what, "attach to PID 1");
}

TEST(Attempts, RefusesWhatIsNoList) {
  for (const char* text : {"", "\n", "usage: x", "\twhat", "mount mount a file system"})
    EXPECT_FALSE(parse_attempts(text)) << text;
}

TEST(Attempts, OnlyTheThreeStatusesMeanSomething) {
  EXPECT_EQ(verdict_of(0), Verdict::refused);
  EXPECT_EQ(verdict_of(10), Verdict::breach);
  EXPECT_EQ(verdict_of(20), Verdict::not_applicable);
  for (int status : {1, 2, 11, 127, 139, 159}) EXPECT_EQ(verdict_of(status), Verdict::unclear);
}

}  // namespace
}  // namespace osb::cli
