#include "execd/output_log.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(OutputLog, offsets_are_bytes_in_memory_and_in_a_file) {
  OutputLog log;
  std::string expected;
  EXPECT_EQ(*log.read(0, 100), "");
  for (int i = 0; i < 10000; ++i) {
    std::string line = "line " + std::to_string(i) + "\n";
    log.append(line);
    expected += line;
    if (i % 500 == 0) {
      ASSERT_EQ(log.size(), expected.size());
      ASSERT_EQ(*log.read(expected.size() / 2, 1 << 20), expected.substr(expected.size() / 2));
    }
  }
  EXPECT_TRUE(log.in_file());
  EXPECT_EQ(*log.read(0, 1 << 20), expected);
  EXPECT_EQ(*log.read(7, 5), expected.substr(7, 5));
  EXPECT_EQ(*log.read(expected.size(), 5), "");
  EXPECT_EQ(*log.read(expected.size() + 100, 5), "");
}

TEST(OutputLog, one_large_piece) {
  OutputLog log;
  std::string big(100'000, 'x');
  log.append(big);
  log.append("y");
  EXPECT_EQ(*log.read(99'999, 10), "xy");
}

}  // namespace
}  // namespace osb::execd
