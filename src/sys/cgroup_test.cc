#include "sys/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::sys {
namespace {

TEST(V2Group, IsTheLineWithoutControllers) {
  EXPECT_EQ(v2_group("12:pids:/a\n0::/user.slice/x.scope\n"), "/user.slice/x.scope");
  EXPECT_EQ(v2_group("0::/\n"), "/");
  EXPECT_EQ(v2_group("0::/a::/b\n"), "/a::/b");
  for (const char* text : {"", "1:name=systemd:/x\n", "0:cpu:/x\n", "0::relative\n", "10::/x\n"})
    EXPECT_EQ(v2_group(text), "") << text;
}

using Version = Controller::Version;

TEST(CgroupLayout, HybridHostLimitsThroughV1) {
  auto layout = CgroupLayout::parse(
      "30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
      "32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "33 30 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
      "35 30 0:31 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n"
      "36 30 0:32 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
      "34 30 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
      "hugetlb\n");
  EXPECT_EQ(layout.v2, "/sys/fs/cgroup/unified");
  EXPECT_EQ(layout.cpu.version, Version::v1);
  EXPECT_EQ(layout.cpu.mount, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(layout.memory.mount, "/sys/fs/cgroup/memory");
  EXPECT_EQ(layout.pids.version, Version::v1);
  EXPECT_EQ(layout.io.version, Version::v1);
  EXPECT_EQ(layout.cpuset, "/sys/fs/cgroup/cpuset");
  EXPECT_EQ(layout.cpuacct, "/sys/fs/cgroup/cpu,cpuacct");
}

TEST(CgroupLayout, UnifiedHostLimitsThroughV2) {
  auto layout = CgroupLayout::parse("30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
                                    "cpuset cpu io memory pids\n");
  EXPECT_EQ(layout.v2, "/sys/fs/cgroup");
  for (const Controller* c : {&layout.cpu, &layout.memory, &layout.pids, &layout.io}) {
    EXPECT_EQ(c->version, Version::v2);
    EXPECT_EQ(c->mount, "/sys/fs/cgroup");
  }
}

TEST(CgroupLayout, WhatIsMissingIsNone) {
  auto layout = CgroupLayout::parse("30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "io\n");
  EXPECT_EQ(layout.memory.version, Version::none);
  EXPECT_TRUE(CgroupLayout::parse("", "").v2.empty());
}

TEST(CgroupLayout, ABindOfOneGroupIsNotTheHierarchy) {
  auto layout =
      CgroupLayout::parse("30 25 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "memory");
  EXPECT_TRUE(layout.v2.empty());
}

TEST(Cgroup2Options, AreThoseOfTheSuperblock) {
  EXPECT_THAT(
      cgroup2_options("30 25 0:26 / /x rw,nosuid - cgroup2 none rw,nsdelegate,memory_recursiveprot\n"),
      testing::ElementsAre("nsdelegate", "memory_recursiveprot"));
  EXPECT_THAT(
      cgroup2_options(
          "30 25 0:26 / /x rw - cgroup cgroup rw,memory\n31 25 0:27 / /y rw,relatime - cgroup2 c rw\n"),
      testing::IsEmpty());
}

TEST(CgroupTree, NoV2SaysWhatToDo) {
  auto tree = CgroupTree::open(CgroupLayout{}, "x");
  ASSERT_FALSE(tree);
  EXPECT_NE(tree.error().message.find("mount -t cgroup2"), std::string::npos);
}

}  // namespace
}  // namespace osb::sys
