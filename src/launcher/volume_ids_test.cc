#include "launcher/volume_ids.h"

#include <gtest/gtest.h>

namespace osb::launcher {
namespace {

constexpr uint32_t kRange = kFirstId + 5 * kIdsPerSandbox;

TEST(VolumeIds, AreOfNoSandbox) {
  EXPECT_GE(kFirstVolumeId, kFirstId + kRanges * kIdsPerSandbox);
  EXPECT_LT(kFirstVolumeId + kIdsPerSandbox, 0x8000'0000u);
}

TEST(VolumeIds, EverySandboxSeesTheSameOnes) {
  IdMaps maps = volume_maps(kRange);
  EXPECT_EQ(maps.users, std::to_string(kFirstVolumeId) + " " + std::to_string(kRange) + " 65536");
  EXPECT_EQ(maps.groups, maps.users);
}

TEST(VolumeIds, TheSandboxsRootIsTheOwner) {
  IdMaps maps = owner_maps(kRange, 1000, 100, HostRoot::nobody);
  std::string rest = "\n" + std::to_string(kFirstVolumeId + 1) + " " + std::to_string(kRange + 1) + " 65535";
  EXPECT_EQ(maps.users, "1000 " + std::to_string(kRange) + " 1" + rest);
  EXPECT_EQ(maps.groups, "100 " + std::to_string(kRange) + " 1" + rest);
}

TEST(VolumeIds, RootIsMappedOnlyWhereThatIsAskedFor) {
  std::string rest = "\n" + std::to_string(kFirstVolumeId + 1) + " " + std::to_string(kRange + 1) + " 65535";
  for (auto [uid, gid] : {std::pair(0u, 0u), {0u, 1000u}, {1000u, 0u}}) {
    IdMaps hidden = owner_maps(kRange, uid, gid, HostRoot::nobody);
    EXPECT_EQ(hidden.users == volume_maps(kRange).users, uid == 0);
    EXPECT_EQ(hidden.groups == volume_maps(kRange).groups, gid == 0);
    IdMaps mapped = owner_maps(kRange, uid, gid, HostRoot::owner);
    EXPECT_EQ(mapped.users, std::to_string(uid) + " " + std::to_string(kRange) + " 1" + rest);
    EXPECT_EQ(mapped.groups, std::to_string(gid) + " " + std::to_string(kRange) + " 1" + rest);
  }
}

// Lines of a map must not overlap, or the kernel refuses it.
TEST(VolumeIds, ADirectoryThatASandboxMadeIsLikeAVolume) {
  IdMaps maps = owner_maps(kRange, kFirstVolumeId + 33, kFirstVolumeId + 65535, HostRoot::owner);
  EXPECT_EQ(maps.users, volume_maps(kRange).users);
  EXPECT_EQ(maps.groups, volume_maps(kRange).groups);
}

TEST(VolumeIds, WhatIsMadeInADirectoryOfRootsIsNotRoots) {
  struct stat info{};
  info.st_mode = S_IFDIR | 0755;
  Maker maker = maker_in(info);
  EXPECT_TRUE(maker.by_root && maker.uid == kFirstVolumeId && maker.gid == kFirstVolumeId);
  info.st_mode = S_IFDIR | 01777;
  EXPECT_FALSE(maker_in(info).by_root);
  info.st_gid = 100;
  info.st_mode = S_IFDIR | 0775;
  maker = maker_in(info);
  EXPECT_TRUE(!maker.by_root && maker.uid == kFirstVolumeId && maker.gid == 100);
  info.st_gid = 0;
  EXPECT_TRUE(maker_in(info).by_root);
  info.st_uid = 1000;
  info.st_gid = 100;
  info.st_mode = S_IFDIR | 0700;
  maker = maker_in(info);
  EXPECT_TRUE(!maker.by_root && maker.uid == 1000 && maker.gid == 100);
}

}  // namespace
}  // namespace osb::launcher
