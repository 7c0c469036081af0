#include "execd/metrics.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(CpuShare, between_two_questions) {
  using namespace std::chrono;
  auto start = CpuShare::Clock::time_point{};
  CpuShare share(1000, start);
  EXPECT_DOUBLE_EQ(share.update(501'000, 2, start + seconds(1)), 25.0);
  EXPECT_DOUBLE_EQ(share.update(900'000, 2, start + seconds(1) + milliseconds(10)), 25.0)
      << "too soon to tell";
  EXPECT_DOUBLE_EQ(share.update(501'000, 2, start + seconds(2)), 0.0);
  EXPECT_DOUBLE_EQ(share.update(9'501'000, 2, start + seconds(3)), 100.0) << "never more than all";
  EXPECT_DOUBLE_EQ(share.update(0, 2, start + seconds(4)), 0.0) << "never negative";
}

TEST(ReadUsage, is_plausible) {
  Usage usage = read_usage({});
  EXPECT_GE(usage.cpu_count, 1);
  EXPECT_GT(usage.memory_total_mib, 0);
  EXPECT_GE(usage.memory_used_mib, 0);
  EXPECT_LE(usage.memory_used_mib, usage.memory_total_mib);
}

TEST(Usage, LimitsThatWereToldCountWhereTheControlGroupsShowNone) {
  Usage usage = read_usage({.cpu_millis = 500, .memory_bytes = 64 << 20});
  EXPECT_LE(usage.memory_total_mib, 64);
  EXPECT_LE(usage.memory_used_mib, usage.memory_total_mib);
  EXPECT_GE(usage.cpu_count, 1);
}

}  // namespace
}  // namespace osb::execd
