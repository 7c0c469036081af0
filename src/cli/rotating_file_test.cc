#include "cli/rotating_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace osb::cli {
namespace {

class RotatingFileTest : public testing::Test {
 protected:
  RotatingFileTest() {
    std::string pattern = testing::TempDir() + "rotating.XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~RotatingFileTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name = "log") const { return directory_ + "/" + name; }
  std::string text(const std::string& name) const { return read_file(path(name)).value_or("(none)"); }
  RotatingFile open(int64_t max_bytes, int64_t backups) {
    auto file = RotatingFile::open({.path = path(), .max_bytes = max_bytes, .backups = backups});
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }

  std::string directory_;
};

TEST_F(RotatingFileTest, KeepsSoManyAndNoMore) {
  auto file = open(8, 2);
  for (const char* line : {"aaa\n", "bbb\n", "ccc\n", "ddd\n", "eee\n", "fff\n", "ggg\n"}) file.write(line);
  EXPECT_EQ(text("log"), "ggg\n");
  EXPECT_EQ(text("log.1"), "eee\nfff\n");
  EXPECT_EQ(text("log.2"), "ccc\nddd\n");
  EXPECT_EQ(text("log.3"), "(none)");
}

TEST_F(RotatingFileTest, WithoutBackupsItBeginsAnew) {
  auto file = open(8, 0);
  for (const char* line : {"aaa\n", "bbb\n", "ccc\n"}) file.write(line);
  EXPECT_EQ(text("log"), "ccc\n");
  EXPECT_EQ(text("log.1"), "(none)");
}

TEST_F(RotatingFileTest, GoesOnWhereAnEarlierOneEnded) {
  open(8, 1).write("aaa\n");
  auto file = open(8, 1);
  file.write("bbb\n");
  EXPECT_EQ(text("log"), "aaa\nbbb\n");
  file.write("ccc\n");
  EXPECT_EQ(text("log"), "ccc\n");
  EXPECT_EQ(text("log.1"), "aaa\nbbb\n");
}

TEST_F(RotatingFileTest, ALongLineIsAFileByItself) {
  auto file = open(4, 1);
  file.write("0123456789\n");
  file.write("x\n");
  EXPECT_EQ(text("log"), "x\n");
  EXPECT_EQ(text("log.1"), "0123456789\n");
}

TEST_F(RotatingFileTest, IsForItsOwnerAndFollowsNoLink) {
  open(100, 1).write("a\n");
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::symlink(path().c_str(), path("link").c_str()), 0);
  EXPECT_FALSE(RotatingFile::open({.path = path("link")}));
  EXPECT_FALSE(RotatingFile::open({.path = directory_})) << "a directory";
  EXPECT_FALSE(RotatingFile::open({.path = path() + "/below"})) << "a file is no directory";
  EXPECT_TRUE(RotatingFile::open({.path = path("made/on/the/way/log")}));
}

TEST_F(RotatingFileTest, WhatCannotBeWrittenIsCounted) {
  // A limit on the size of files stands for a full disk.
  ::signal(SIGXFSZ, SIG_IGN);
  auto file = open(1 << 20, 1);
  file.write("first\n");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight{6, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  file.write("lost\n");
  file.write("lost\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(file.dropped(), 2);
  file.write("again\n");
  EXPECT_EQ(text("log"), "first\n(2 lines could not be written)\nagain\n");
}

}  // namespace
}  // namespace osb::cli
