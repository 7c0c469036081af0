#include "execd/output_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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

TEST(OutputLog, the_oldest_part_goes_and_offsets_stay) {
  OutputLog log;
  uint64_t written = 0;
  std::string piece(1 << 20, 'x');
  while (written < 3 * OutputLog::kMostKept) {
    std::string mark = std::to_string(written);
    log.append(mark + piece.substr(mark.size()));
    written += piece.size();
    ASSERT_LE(log.kept_bytes(), OutputLog::kMostKept);
  }
  EXPECT_EQ(log.size(), written) << "it goes on";
  EXPECT_EQ(log.first(), written - OutputLog::kMostKept);
  std::string last = std::to_string(written - piece.size());
  EXPECT_EQ(*log.read(written - piece.size(), last.size()), last);
  std::string oldest = std::to_string(log.first());
  EXPECT_EQ(*log.read(0, oldest.size()), oldest)
      << "whoever asks for what is gone gets the oldest that is not";
  struct stat info{};
  ASSERT_EQ(::fstat(log.file_descriptor(), &info), 0);
  EXPECT_LT(static_cast<uint64_t>(info.st_blocks) * 512, OutputLog::kMostKept + (8 << 20));
}

}  // namespace
}  // namespace osb::execd
