#include "execd/entry_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::execd {
namespace {

using testing::EndsWith;
using testing::StartsWith;

const WallTime kAt = *parse_time("2026-01-02T03:04:05Z");

TEST(EntryLog, LinesHaveTheTimeOfTheirFirstByte) {
  EntryLog log;
  EXPECT_EQ(log.text(), "");
  log.append("one\ntw", kAt);
  log.append("o\n\nlast", kAt + seconds(1));
  EXPECT_EQ(log.text(),
            "2026-01-02T03:04:05Z one\n2026-01-02T03:04:05Z two\n2026-01-02T03:04:06Z \n"
            "2026-01-02T03:04:06Z last\n");
  EXPECT_FALSE(log.forgot());
}

TEST(EntryLog, KeepsTheLastPart) {
  EntryLog log;
  for (int i = 0; i < 100'000; ++i) log.append("line " + std::to_string(i) + "\n", kAt);
  EXPECT_TRUE(log.forgot());
  EXPECT_LE(log.text().size(), EntryLog::kMostBytes);
  EXPECT_GT(log.text().size(), EntryLog::kMostBytes / 2);
  EXPECT_THAT(log.text(), EndsWith("line 99999\n"));
}

TEST(EntryLog, OneEndlessLineIsCut) {
  EntryLog log;
  for (int i = 0; i < 1000; ++i) log.append(std::string(4096, 'x'), kAt);
  EXPECT_TRUE(log.forgot());
  EXPECT_LE(log.text().size(), EntryLog::kMostLine + 1);
  log.append("\nnext\n", kAt);
  EXPECT_THAT(log.text(), EndsWith(" next\n"));
}

}  // namespace
}  // namespace osb::execd
