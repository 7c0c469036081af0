#include "execd/sysinfo_answers.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(SandboxSysinfo, TellsTheSandboxsMemory) {
  CgroupUsage usage;
  usage.memory_limit_bytes = 512 << 20;
  usage.memory_used_bytes = 12 << 20;
  auto info = sandbox_sysinfo(usage, "0.50 1.25 3.00 2/345 6789\n", 77);
  EXPECT_EQ(info.totalram, (512u << 20) + 4096);
  EXPECT_EQ(info.freeram, (500u << 20) + 4096);
  EXPECT_EQ(info.totalswap, 0u);
  EXPECT_EQ(info.mem_unit, 1u);
  EXPECT_EQ(info.uptime, 77);
  EXPECT_EQ(info.loads[0], 1u << (SI_LOAD_SHIFT - 1));
  EXPECT_EQ(info.loads[2], 3u << SI_LOAD_SHIFT);
  EXPECT_EQ(info.procs, 345);
}

TEST(SandboxSysinfo, MoreInUseThanTheLimitIsNothingFree) {
  CgroupUsage usage;
  usage.memory_limit_bytes = 10 << 20;
  usage.memory_used_bytes = 11 << 20;
  EXPECT_EQ(sandbox_sysinfo(usage, "", 0).freeram, 0u);
}

TEST(SandboxSysinfo, BrokenTextsAreZeros) {
  for (const char* text : {"", "x y z", "-1 nan inf nothing", "1e9 -0.5 1x /"}) {
    auto info = sandbox_sysinfo({}, text, 0);
    EXPECT_EQ(info.loads[0] + info.loads[1] + info.loads[2] + info.procs, 0u) << text;
  }
  EXPECT_EQ(sandbox_sysinfo({}, "0 0 0 1/99999999", 0).procs, UINT16_MAX);
}

}  // namespace
}  // namespace osb::execd
