#include "execd/file_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace osb::execd {
namespace {

class FileOps : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/osb-ops-XXXXXX";
    ASSERT_TRUE(::mkdtemp(dir));
    root_ = dir;
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }
  std::string at(const std::string& name) const { return root_ + "/" + name; }
  void put(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(at(name), text, O_CREAT | O_TRUNC));
  }
  std::string get(const std::string& name) const {
    return read_file(at(name), 64 << 20).value_or("<missing>");
  }
  bool exists(const std::string& name) const {
    struct stat info;
    return ::lstat(at(name).c_str(), &info) == 0;
  }
  std::string root_;
};

TEST_F(FileOps, remove_file) {
  put("f", "x");
  EXPECT_TRUE(remove_file(at("f")));
  EXPECT_FALSE(exists("f"));
  EXPECT_TRUE(remove_file(at("f"))) << "missing is success";
  ASSERT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  EXPECT_FALSE(remove_file(at("d")));
  ASSERT_EQ(::symlink("d", at("to-dir").c_str()), 0);
  EXPECT_FALSE(remove_file(at("to-dir")));
  ASSERT_EQ(::symlink("nowhere", at("dangling").c_str()), 0);
  EXPECT_TRUE(remove_file(at("dangling")));
  EXPECT_FALSE(exists("dangling"));
}

TEST_F(FileOps, remove_tree_does_not_follow_links) {
  ASSERT_EQ(::mkdir(at("keep").c_str(), 0755), 0);
  put("keep/f", "x");
  ASSERT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(at("d/e").c_str(), 0755), 0);
  put("d/e/f", "x");
  ASSERT_EQ(::symlink("../keep", at("d/link").c_str()), 0);
  EXPECT_TRUE(remove_tree(at("d")));
  EXPECT_FALSE(exists("d"));
  EXPECT_EQ(get("keep/f"), "x");
  ASSERT_EQ(::symlink("keep", at("link").c_str()), 0);
  EXPECT_TRUE(remove_tree(at("link")));
  EXPECT_TRUE(exists("keep/f"));
  EXPECT_TRUE(remove_tree(at("nope")));
}

TEST_F(FileOps, move) {
  put("a", "x");
  EXPECT_TRUE(move_path(at("a"), at("new/dir/b")));
  EXPECT_EQ(get("new/dir/b"), "x");
  put("c", "y");
  auto refused = move_path(at("c"), at("new/dir/b"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::already_exists);
  EXPECT_EQ(get("c"), "y");
  EXPECT_EQ(get("new/dir/b"), "x");
  EXPECT_EQ(move_path(at("nope"), at("z")).error().sys_errno, ENOENT);
  EXPECT_TRUE(move_path(at("new"), at("moved")));
  EXPECT_EQ(get("moved/dir/b"), "x");
}

TEST_F(FileOps, copy_tree_keeps_what_it_can) {
  ASSERT_EQ(::mkdir(at("s").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(at("s/d").c_str(), 0755), 0);
  put("s/d/f", "content");
  ::chmod(at("s/d/f").c_str(), 0640);
  ASSERT_EQ(::symlink("f", at("s/d/l").c_str()), 0);
  ::chmod(at("s/d").c_str(), 0555);
  timespec times[2] = {{1000, 0}, {2000, 0}};
  ::utimensat(AT_FDCWD, at("s/d").c_str(), times, 0);
  ASSERT_TRUE(copy_tree(at("s"), at("t")));
  EXPECT_EQ(get("t/d/f"), "content");
  struct stat info;
  ::lstat(at("t/d/f").c_str(), &info);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  ::lstat(at("t/d").c_str(), &info);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
  EXPECT_EQ(info.st_mtim.tv_sec, 2000);
  ::lstat(at("t/d/l").c_str(), &info);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  ::chmod(at("s/d").c_str(), 0755);
  ::chmod(at("t/d").c_str(), 0755);
}

TEST_F(FileOps, replace) {
  put("f", "one two one");
  struct stat before, after;
  ::chmod(at("f").c_str(), 0600);
  ::stat(at("f").c_str(), &before);
  EXPECT_EQ(*replace_in_file(at("f"), "one", "1"), 2u);
  EXPECT_EQ(get("f"), "1 two 1");
  EXPECT_EQ(*replace_in_file(at("f"), "1", "three"), 2u);
  EXPECT_EQ(get("f"), "three two three");
  EXPECT_EQ(*replace_in_file(at("f"), "absent", "x"), 0u);
  EXPECT_EQ(*replace_in_file(at("f"), "three two three", ""), 1u);
  EXPECT_EQ(get("f"), "");
  ::stat(at("f").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(after.st_mode & 07777, 0600u);
  EXPECT_FALSE(replace_in_file(at("f"), "", "x"));
  EXPECT_EQ(replace_in_file(at("nope"), "a", "b").error().sys_errno, ENOENT);
  EXPECT_FALSE(replace_in_file(root_, "a", "b"));
}

TEST_F(FileOps, replace_across_pieces_and_overlapping) {
  put("f", "aaaa");
  EXPECT_EQ(*replace_in_file(at("f"), "aa", "b"), 2u);
  EXPECT_EQ(get("f"), "bb");
  std::string big, expected;
  for (int i = 0; i < 200'000; ++i) {
    big += "needle" + std::to_string(i % 10);
    expected += "pin" + std::to_string(i % 10);
  }
  put("big", big);
  EXPECT_EQ(*replace_in_file(at("big"), "needle", "pin"), 200'000u);
  EXPECT_EQ(get("big"), expected);
}

}  // namespace
}  // namespace osb::execd
