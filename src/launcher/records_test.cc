#include "launcher/records.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace osb::launcher {
namespace {

struct Directory {
  Directory() : path(testing::TempDir() + "records_test.XXXXXX") {
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    fd = *open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
  Fd fd;
};

TEST(Records, AreReplacedAsAWholeAndGoAway) {
  Directory dir;
  EXPECT_EQ(*read_record(dir.fd.get()), "");
  ASSERT_TRUE(write_record(dir.fd.get(), "a long first record"));
  EXPECT_EQ(*read_record(dir.fd.get()), "a long first record");
  ASSERT_TRUE(write_record(dir.fd.get(), "short"));
  EXPECT_EQ(*read_record(dir.fd.get()), "short");
  struct stat info{};
  ASSERT_EQ(::stat((dir.path + "/record").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_TRUE(remove_record(dir.fd.get()));
  ASSERT_TRUE(remove_record(dir.fd.get())) << "also when there is none";
  EXPECT_TRUE(std::filesystem::is_empty(dir.path));
}

TEST(Records, AreBounded) {
  Directory dir;
  EXPECT_TRUE(write_record(dir.fd.get(), std::string(kMaxRecord, 'x')));
  EXPECT_EQ(write_record(dir.fd.get(), std::string(kMaxRecord + 1, 'x')).error().code,
            Code::permission_denied);
  EXPECT_EQ(read_record(dir.fd.get())->size(), kMaxRecord);
}

TEST(Records, FollowNoLink) {
  Directory dir;
  std::filesystem::create_symlink("/etc/passwd", dir.path + "/record");
  EXPECT_FALSE(read_record(dir.fd.get()));
}

}  // namespace
}  // namespace osb::launcher
