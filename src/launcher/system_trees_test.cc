#include "launcher/system_trees.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr uint32_t kId = 1'900'000'000;

// These need root, and a kernel that mounts onto what is attached nowhere.
#define SKIP_UNLESS(made) \
  if (made < 0) GTEST_SKIP() << "cannot be made here: " << -made

TEST(DeviceTree, IsWholeBeforeItIsAttached) {
  ::umask(022);
  int made = make_device_tree(kId);
  SKIP_UNLESS(made);
  Fd dev(made);
  EXPECT_EQ(::umask(022), 022u) << "the launcher's umask stays";
  struct stat info{};
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    ASSERT_EQ(::fstatat(dev.get(), name, &info, AT_SYMLINK_NOFOLLOW), 0) << name;
    EXPECT_EQ(info.st_mode, static_cast<mode_t>(S_IFCHR | 0666)) << name;
    EXPECT_EQ(info.st_uid, kId) << name;
  }
  ASSERT_EQ(::fstatat(dev.get(), "shm", &info, 0), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  ASSERT_EQ(::fstatat(dev.get(), "pts/ptmx", &info, 0), 0) << "terminals are mounted in it";
  EXPECT_TRUE(Fd(open_null(dev.get())).valid());
}

TEST(DeviceTree, OnlyANullDeviceIsOne) {
  int made = make_device_tree(kId);
  SKIP_UNLESS(made);
  Fd dev(made);
  ASSERT_EQ(::unlinkat(dev.get(), "null", 0), 0);
  EXPECT_EQ(open_null(dev.get()), -ENOENT);
  ASSERT_EQ(::renameat(dev.get(), "zero", dev.get(), "null"), 0);
  EXPECT_EQ(open_null(dev.get()), -ENODEV);
}

TEST(SysfsTree, ShowsItsPartsAndNothingElse) {
  Fd sysfs(sys::mount_filesystem("sysfs", nullptr, 0, 0));
  int made = sysfs.valid() ? make_sysfs_tree(sysfs.get()) : sysfs.get();
  SKIP_UNLESS(made);
  Fd tree(made);
  EXPECT_EQ(::faccessat(tree.get(), "class/net/lo/mtu", F_OK, 0), 0);
  EXPECT_EQ(::faccessat(tree.get(), "devices/system/cpu/online", F_OK, 0), 0);
  EXPECT_EQ(::faccessat(tree.get(), "class/block", F_OK, 0), -1);
  EXPECT_EQ(::mkdirat(tree.get(), "more", 0755), -1) << "it is read-only";
}

}  // namespace
}  // namespace osb::launcher
