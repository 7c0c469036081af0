#include "docker/host_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace osb::docker {
namespace {

namespace fs = std::filesystem;

class HostPathTest : public testing::Test {
 protected:
  HostPathTest() {
    char name[] = "/tmp/osb-host-path-XXXXXX";
    directory_ = ::mkdtemp(name);
    for (const char* part : {"/shared/a/b", "/state/db", "/secret"})
      fs::create_directories(directory_ + part);
    std::ofstream(directory_ + "/shared/file") << "text";
    fs::create_symlink(directory_ + "/secret", directory_ + "/shared/link");
    fs::create_symlink("..", directory_ + "/shared/a/up");
  }
  ~HostPathTest() override { fs::remove_all(directory_); }
  Result<FileId> look_up(const std::string& path) {
    return look_up_host_path({directory_ + "/shared", directory_ + "/state"}, directory_ + "/state",
                             directory_ + path);
  }
  std::string directory_;
};

TEST_F(HostPathTest, WhatIsThere) {
  auto found = look_up("/shared/a/b");
  ASSERT_TRUE(found) << found.error().message;
  struct stat info{};
  ASSERT_EQ(::stat((directory_ + "/shared/a/b").c_str(), &info), 0);
  EXPECT_EQ(to_line(*found), std::to_string(info.st_dev) + " " + std::to_string(info.st_ino) + "\n");
  EXPECT_TRUE(look_up("/shared"));
}

TEST_F(HostPathTest, WhatIsMissingIsMade) {
  EXPECT_TRUE(look_up("/shared/new/directory"));
  EXPECT_TRUE(fs::is_directory(directory_ + "/shared/new/directory"));
}

TEST_F(HostPathTest, WhatIsMissingIsOnlyTold) {
  auto found = look_up_host_path({directory_ + "/shared"}, directory_ + "/state",
                                 directory_ + "/shared/new/x", Missing::told);
  EXPECT_EQ(found.error().code, Code::not_found);
  EXPECT_FALSE(fs::exists(directory_ + "/shared/new"));
}

TEST_F(HostPathTest, AFile) {
  struct stat info{};
  ASSERT_EQ(::stat((directory_ + "/shared/file").c_str(), &info), 0);
  auto found = look_up("/shared/file");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (FileId{info.st_dev, info.st_ino}));
  EXPECT_EQ(look_up("/shared/file/x").error().code, Code::invalid_argument);
  ASSERT_EQ(::mkfifo((directory_ + "/shared/pipe").c_str(), 0600), 0);
  EXPECT_EQ(look_up("/shared/pipe").error().code, Code::invalid_argument) << "nor anything else";
}

TEST_F(HostPathTest, LinksThatLeadElsewhere) {
  fs::create_symlink("nowhere", directory_ + "/shared/dangling");
  fs::create_symlink("../..", directory_ + "/shared/a/out");
  fs::create_symlink("loop", directory_ + "/shared/loop");
  fs::create_symlink(directory_ + "/sharedx", directory_ + "/shared/beside");
  fs::create_directory(directory_ + "/sharedx");
  for (const char* path : {"/shared/link", "/shared/link/x", "/shared/a/out", "/shared/a/out/secret",
                           "/shared/dangling", "/shared/dangling/x", "/shared/loop", "/shared/beside"})
    EXPECT_EQ(look_up(path).error().code, Code::invalid_argument) << path;
  EXPECT_FALSE(fs::exists(directory_ + "/secret/x"));
  EXPECT_FALSE(fs::exists(directory_ + "/shared/nowhere"));
  fs::create_symlink(directory_ + "/state/db", directory_ + "/shared/own");
  EXPECT_EQ(look_up("/shared/own").error().code, Code::permission_denied) << "the service's";
  EXPECT_EQ(look_up("/shared/own/new").error().code, Code::permission_denied);
  EXPECT_FALSE(fs::exists(directory_ + "/state/db/new"));
}

TEST_F(HostPathTest, LinksThatStayOnTheList) {
  fs::create_symlink(directory_ + "/shared/a/b", directory_ + "/shared/absolute");
  fs::create_symlink("absolute", directory_ + "/shared/twice");
  fs::create_symlink("../file", directory_ + "/shared/a/file");
  auto same = [&](const char* one, const char* other) {
    auto found = look_up(one), wanted = look_up(other);
    ASSERT_TRUE(found) << one << ": " << found.error().message;
    EXPECT_EQ(*found, *wanted) << one;
  };
  same("/shared/a/up", "/shared");
  same("/shared/a/up/a/b", "/shared/a/b");
  same("/shared/absolute", "/shared/a/b");
  same("/shared/twice", "/shared/a/b");
  same("/shared/a/file", "/shared/file");
  EXPECT_TRUE(look_up("/shared/twice/made"));
  EXPECT_TRUE(fs::is_directory(directory_ + "/shared/a/b/made"));
}

TEST_F(HostPathTest, WhatIsNotOnTheListOrTheServicesOwn) {
  for (const char* path : {"/secret", "/sharedx", "/state", "/state/db", "/state/db/new"})
    EXPECT_EQ(look_up(path).error().code, Code::permission_denied) << path;
  EXPECT_FALSE(fs::exists(directory_ + "/state/db/new")) << "made before it was refused";
  fs::create_symlink(directory_ + "/state", directory_ + "/way");
  auto around = look_up_host_path({directory_ + "/way"}, directory_ + "/state", directory_ + "/way/db");
  EXPECT_EQ(around.error().code, Code::permission_denied) << "under another name";
  auto above = look_up_host_path({directory_}, directory_ + "/state", directory_);
  EXPECT_EQ(above.error().code, Code::permission_denied) << "the service's files lie below it";
}

TEST(HostPathShown, TheReasonIsTheCause) {
  auto why = [](int error) { return why_not_shown("1 2\n0 " + std::to_string(error) + "\n", "1 2\n3 4\n"); };
  EXPECT_NE(why(ENOTDIR).find("symbolic link"), std::string::npos);
  EXPECT_NE(why(ELOOP).find("symbolic link"), std::string::npos);
  EXPECT_NE(why(EACCES).find("image's user"), std::string::npos);
  EXPECT_NE(why(EXDEV).find("somewhere else"), std::string::npos);
  for (const char* seen : {"1 2\n3 5\n", "1 2\n0 x\n", "1 2\n", "", "1 2\n0 0\n"})
    EXPECT_NE(why_not_shown(seen, "1 2\n3 4\n").find("another directory"), std::string::npos) << seen;
}

}  // namespace
}  // namespace osb::docker
