#include "sys/mount.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>

namespace osb::sys {
namespace {

TEST(OverlayOptionsText, JoinsLayersAndKeepsTheRest) {
  const MountOption options[] = {{"lowerdir+", "lowers/0"}, {"lowerdir+", "lowers/1"},
                                 {"lowerdir+", "lowers/2"}, {"upperdir", "s/id/upper"},
                                 {"workdir", "s/id/work"},  {"volatile", nullptr},
                                 {"index", "off"}};
  char text[256];
  ASSERT_EQ(overlay_options_text(options, std::size(options), text, sizeof text), 0);
  EXPECT_STREQ(
      text, "lowerdir=lowers/0:lowers/1:lowers/2,upperdir=s/id/upper,workdir=s/id/work,volatile,index=off");
}

TEST(OverlayOptionsText, IsNeverCutOff) {
  const MountOption options[] = {{"lowerdir+", "ab"}, {"lowerdir+", "cd"}};
  std::string wanted = "lowerdir=ab:cd";
  char text[32];
  EXPECT_EQ(overlay_options_text(options, 2, text, wanted.size() + 1), 0);
  EXPECT_EQ(text, wanted);
  for (size_t size = 0; size <= wanted.size(); ++size)
    EXPECT_EQ(overlay_options_text(options, 2, text, size), -E2BIG) << size;
}

// In a mount namespace of its own: 0 when a copy of a shared mount keeps to itself what is mounted on it, 77
// when that cannot be tried here.
int try_shared_mount(const std::string& shared) {
  if (::unshare(CLONE_NEWNS) < 0) return 77;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return 77;
  if (::mount("none", shared.c_str(), "tmpfs", 0, nullptr) < 0) return 77;
  if (::mount(nullptr, shared.c_str(), nullptr, MS_SHARED, nullptr) < 0) return 77;
  std::string inner = shared + "/inner", place = "/mnt";
  if (::mkdir(inner.c_str(), 0755) < 0) return 1;
  int copy = clone_mount(AT_FDCWD, shared.c_str());
  if (copy < 0 || attach_mount(copy, AT_FDCWD, place.c_str()) < 0) return 2;
  int other = mount_filesystem("tmpfs", nullptr, 0, 0);
  if (other < 0 || attach_mount(other, copy, "inner") < 0) return 3;
  struct stat above{}, below{};
  if (::stat(shared.c_str(), &above) < 0 || ::stat(inner.c_str(), &below) < 0) return 4;
  return above.st_dev == below.st_dev ? 0 : 5;
}

TEST(CloneMount, WhatIsMountedOnACopyStaysThere) {
  char directory[] = "/tmp/osb-mount-test-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  pid_t child = ::fork();
  if (child == 0) ::_exit(try_shared_mount(directory));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::rmdir(directory);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace osb::sys
