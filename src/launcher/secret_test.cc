#include "launcher/secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"

namespace osb::launcher {
namespace {

struct Directory {
  Directory() {
    std::string pattern = testing::TempDir() + "secret_test.XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path = pattern;
    fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY).value();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  Result<void> ensure() { return ensure_secret(fd.get(), "secret", ::getuid(), ::getgid()); }
  std::string read() { return read_file(path + "/secret").value_or("(none)"); }

  std::string path;
  Fd fd;
};

TEST(Secret, IsMadeOnceAndKept) {
  Directory directory;
  ASSERT_TRUE(directory.ensure());
  std::string first = directory.read();
  EXPECT_EQ(first.size(), 32u);
  struct stat info{};
  ASSERT_EQ(::stat((directory.path + "/secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0400u);
  ASSERT_EQ(::chmod((directory.path + "/secret").c_str(), 0644), 0);
  ASSERT_TRUE(directory.ensure());
  EXPECT_EQ(directory.read(), first);
  ASSERT_EQ(::stat((directory.path + "/secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0400u) << "put right";
  Directory other;
  ASSERT_TRUE(other.ensure());
  EXPECT_NE(other.read(), first);
}

TEST(Secret, ARestOfAnInterruptedStartIsNoObstacle) {
  Directory directory;
  ASSERT_TRUE(write_file(directory.path + "/secret.new", "half", O_CREAT));
  ASSERT_TRUE(directory.ensure());
  EXPECT_EQ(directory.read().size(), 32u);
  EXPECT_FALSE(std::filesystem::exists(directory.path + "/secret.new"));
}

TEST(Secret, WhatAPowerCutLeftIsMadeAnew) {
  for (size_t zeros : {0, 32}) {
    Directory directory;
    ASSERT_TRUE(write_file(directory.path + "/secret", std::string(zeros, '\0'), O_CREAT, 0600));
    ASSERT_TRUE(directory.ensure());
    EXPECT_EQ(directory.read().size(), 32u);
    EXPECT_NE(directory.read(), std::string(32, '\0'));
  }
}

TEST(Secret, SomethingElseUnderItsNameIsRefused) {
  for (const char* content : {"short", "longer than the thirty-two bytes that it has"}) {
    Directory directory;
    ASSERT_TRUE(write_file(directory.path + "/secret", content, O_CREAT));
    EXPECT_FALSE(directory.ensure()) << content;
    EXPECT_EQ(directory.read(), content) << "left alone";
  }
  Directory directory;
  ASSERT_TRUE(write_file(directory.path + "/elsewhere", std::string(32, 'x'), O_CREAT));
  ASSERT_EQ(::symlink("elsewhere", (directory.path + "/secret").c_str()), 0);
  EXPECT_FALSE(directory.ensure()) << "a link is not followed";
}

}  // namespace
}  // namespace osb::launcher
