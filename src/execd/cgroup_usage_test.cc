#include "execd/cgroup_usage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"
#include "execd/directories.h"
#include "execd/file_ops.h"
#include "execd/paths.h"

namespace osb::execd {
namespace {

class CgroupUsageTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/osb-cgroup-XXXXXX";
    ASSERT_TRUE(::mkdtemp(dir));
    root_ = dir;
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }
  void put(const std::string& name, std::string_view text) {
    std::string path = root_ + "/" + name;
    ASSERT_TRUE(make_directories(std::string(parent_path(path))));
    ASSERT_TRUE(write_file(path, text, O_CREAT));
  }
  std::string root_;
};

TEST_F(CgroupUsageTest, unified) {
  put("box/memory.max", "1073741824\n");
  put("box/memory.current", "300\n");
  put("box/memory.stat", "anon 1\ninactive_file 100\nactive_file 7\n");
  put("box/cpu.max", "150000 100000\n");
  put("box/cpu.stat", "usage_usec 12345\nuser_usec 1\n");
  CgroupUsage usage = read_cgroup_usage(root_, "0::/box\n");
  EXPECT_EQ(usage.memory_limit_bytes, 1073741824u);
  EXPECT_EQ(usage.memory_used_bytes, 200u);
  EXPECT_EQ(usage.cpu_used_usec, 12345u);
  EXPECT_DOUBLE_EQ(*usage.cpu_limit, 1.5);
}

TEST_F(CgroupUsageTest, unified_in_a_namespace_without_limits) {
  put("memory.max", "max\n");
  put("memory.current", "300\n");
  put("cpu.max", "max 100000\n");
  put("cpu.stat", "usage_usec 9\n");
  CgroupUsage usage = read_cgroup_usage(root_, "0::/../outside\n");
  EXPECT_FALSE(usage.memory_limit_bytes);
  EXPECT_EQ(usage.memory_used_bytes, 300u);
  EXPECT_FALSE(usage.cpu_limit);
  EXPECT_EQ(usage.cpu_used_usec, 9u);
}

TEST_F(CgroupUsageTest, version_1_beside_an_empty_unified_one) {
  put("memory/box/memory.usage_in_bytes", "5000\n");
  put("memory/box/memory.limit_in_bytes", "8000\n");
  put("memory/box/memory.stat", "total_inactive_file 1000\n");
  put("cpu,cpuacct/box/cpuacct.usage", "7000000\n");
  put("cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
  put("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  put("unified/box/cgroup.procs", "");
  CgroupUsage usage = read_cgroup_usage(root_, "4:memory:/box\n3:cpu,cpuacct:/box\n0::/box\n");
  EXPECT_EQ(usage.memory_limit_bytes, 8000u);
  EXPECT_EQ(usage.memory_used_bytes, 4000u);
  EXPECT_EQ(usage.cpu_used_usec, 7000u);
  EXPECT_DOUBLE_EQ(*usage.cpu_limit, 0.5);
}

TEST_F(CgroupUsageTest, version_1_without_limits) {
  put("memory/memory.usage_in_bytes", "5000\n");
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("cpuacct/cpuacct.usage", "7000000\n");
  put("cpu/cpu.cfs_quota_us", "-1\n");
  put("cpu/cpu.cfs_period_us", "100000\n");
  CgroupUsage usage = read_cgroup_usage(root_, "4:memory:/\n3:cpu:/\n2:cpuacct:/host/path\n");
  EXPECT_FALSE(usage.memory_limit_bytes);
  EXPECT_EQ(usage.memory_used_bytes, 5000u);
  EXPECT_EQ(usage.cpu_used_usec, 7000u);
  EXPECT_FALSE(usage.cpu_limit);
}

TEST_F(CgroupUsageTest, nothing_mounted) {
  CgroupUsage usage = read_cgroup_usage(root_ + "/nope", "0::/x\n4:memory:/x\nbroken\n");
  EXPECT_FALSE(usage.memory_used_bytes);
  EXPECT_FALSE(usage.cpu_used_usec);
}

}  // namespace
}  // namespace osb::execd
