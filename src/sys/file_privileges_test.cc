#include "sys/file_privileges.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"

namespace osb::sys {
namespace {

namespace fs = std::filesystem;

class FilePrivileges : public testing::Test {
 protected:
  FilePrivileges() {
    std::string name = testing::TempDir() + "privileges-XXXXXX";
    top_ = ::mkdtemp(name.data());
    fs::create_directories(top_ / "a/b/c");
  }
  ~FilePrivileges() override { fs::remove_all(top_); }

  void write(const fs::path& name, mode_t mode) {
    std::ofstream(top_ / name) << "x";
    ASSERT_EQ(::chmod((top_ / name).c_str(), mode), 0);
  }
  int look() {
    auto directory = open_at(AT_FDCWD, top_, O_PATH | O_DIRECTORY);
    return directory ? find_file_privileges(directory->get()) : -EBADF;
  }

  fs::path top_;
};

TEST_F(FilePrivileges, OrdinaryFilesHaveNone) {
  write("a/program", 0755);
  write("a/b/file", 0644);
  fs::create_symlink("/usr/bin", top_ / "a/link");
  fs::create_symlink("nowhere", top_ / "a/dangling");
  ASSERT_EQ(::mkfifo((top_ / "a/pipe").c_str(), 0700), 0);
  // Of a directory the bit says who gets its files, and lets nobody act as anybody.
  ASSERT_EQ(::chmod((top_ / "a/b").c_str(), 02755), 0);
  EXPECT_EQ(look(), 0);
}

TEST_F(FilePrivileges, AreFoundHoweverDeep) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has files of root's";
  for (mode_t mode : {04755, 02755, 06711, 04000}) {
    write("a/b/c/program", mode);
    EXPECT_EQ(look(), -EPERM) << mode;
  }
  // Somebody else's are somebody else's business.
  ASSERT_EQ(::chown((top_ / "a/b/c/program").c_str(), 1000, 1000), 0);
  ASSERT_EQ(::chmod((top_ / "a/b/c/program").c_str(), 06755), 0);
  EXPECT_EQ(look(), 0);
}

TEST_F(FilePrivileges, ADirectoryWithoutAnEndIsNotLookedThrough) {
  fs::path deep = top_;
  for (size_t i = 0; i < kDeepestLookedAt + 1; ++i) deep /= "d";
  fs::create_directories(deep);
  EXPECT_EQ(look(), -ELOOP);
}

}  // namespace
}  // namespace osb::sys
