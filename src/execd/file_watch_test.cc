#include "execd/file_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd/file_ops.h"

namespace osb::execd {
namespace {

using testing::HasSubstr;
using testing::Not;

class FileWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/osb-watch-XXXXXX";
    ASSERT_TRUE(::mkdtemp(dir));
    root_ = dir;
    ASSERT_EQ(::mkdir((root_ + "/sub").c_str(), 0755), 0);
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }
  static std::string read(FileWatch& watch, bool* gone = nullptr) {
    bool ignored = false;
    std::string all, piece;
    do {
      piece = watch.read_events(7, gone ? *gone : ignored);
      all += piece;
    } while (!piece.empty());
    return all;
  }
  std::string root_;
};

TEST_F(FileWatchTest, one_directory) {
  auto watch = FileWatch::create(root_, FileWatch::Below::no);
  ASSERT_TRUE(watch);
  ASSERT_TRUE(write_file(root_ + "/f", "x", O_CREAT));
  ASSERT_TRUE(write_file(root_ + "/sub/g", "x", O_CREAT));
  std::string events = read(*watch);
  EXPECT_THAT(events, HasSubstr("{\"type\":\"created\",\"path\":\"" + root_ +
                                "/f\",\"directory\":false,\"timestamp\":7}\n\n"));
  EXPECT_THAT(events, HasSubstr("\"modified\""));
  EXPECT_THAT(events, Not(HasSubstr("/sub/g")));
  ::rename((root_ + "/f").c_str(), (root_ + "/h").c_str());
  ::unlink((root_ + "/h").c_str());
  events = read(*watch);
  for (const char* type : {"moved_from", "moved_to", "deleted"}) EXPECT_THAT(events, HasSubstr(type));
}

TEST_F(FileWatchTest, directories_below_and_new_ones) {
  auto watch = FileWatch::create(root_, FileWatch::Below::yes);
  ASSERT_TRUE(watch);
  ASSERT_TRUE(write_file(root_ + "/sub/g", "x", O_CREAT));
  EXPECT_THAT(read(*watch), HasSubstr("/sub/g"));
  ASSERT_EQ(::mkdir((root_ + "/new").c_str(), 0755), 0);
  EXPECT_THAT(read(*watch), HasSubstr("\"directory\":true"));
  ASSERT_TRUE(write_file(root_ + "/new/x", "x", O_CREAT));
  EXPECT_THAT(read(*watch), HasSubstr("/new/x"));
}

TEST_F(FileWatchTest, the_watched_path_goes_away) {
  auto watch = FileWatch::create(root_ + "/sub", FileWatch::Below::no);
  ASSERT_TRUE(watch);
  bool gone = false;
  read(*watch, &gone);
  EXPECT_FALSE(gone);
  ::rmdir((root_ + "/sub").c_str());
  EXPECT_THAT(read(*watch, &gone), HasSubstr("deleted"));
  EXPECT_TRUE(gone);
  EXPECT_EQ(FileWatch::create(root_ + "/nope", FileWatch::Below::no).error().sys_errno, ENOENT);
}

}  // namespace
}  // namespace osb::execd
