#include "execd/incoming_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "execd/file_ops.h"

namespace osb::execd {
namespace {

class IncomingFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/osb-incoming-XXXXXX";
    ASSERT_TRUE(::mkdtemp(dir));
    root_ = dir;
    ::umask(022);
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }
  std::string at(const std::string& name) const { return root_ + "/" + name; }
  std::string get(const std::string& name) const { return read_file(at(name)).value_or("<missing>"); }
  mode_t mode(const std::string& name) const {
    struct stat info{};
    ::lstat(at(name).c_str(), &info);
    return info.st_mode;
  }
  void put(const std::string& name, std::string_view text, const Permission& permission = {}) {
    auto file = IncomingFile::create(at(name));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->write(text));
    auto done = file->commit(permission);
    ASSERT_TRUE(done) << done.error().message;
  }
  size_t entries() const {
    size_t n = 0;
    DIR* dir = ::opendir(root_.c_str());
    while (dirent* e = ::readdir(dir)) n += e->d_name[0] == '.' && e->d_name[1] == 'u';
    ::closedir(dir);
    return n;
  }
  std::string root_;
};

TEST_F(IncomingFileTest, new_file_with_parents) {
  put("a/b/c", "text");
  EXPECT_EQ(get("a/b/c"), "text");
  EXPECT_EQ(mode("a/b/c") & 07777, 0755u);
  put("m", "", {"", "", 600});
  EXPECT_EQ(mode("m") & 07777, 0600u);
  EXPECT_EQ(get("m"), "");
}

TEST_F(IncomingFileTest, nothing_is_seen_before_commit_and_nothing_left_behind) {
  ASSERT_TRUE(write_file(at("f"), "old", O_CREAT));
  {
    auto file = IncomingFile::create(at("f"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new"));
    EXPECT_EQ(get("f"), "old");
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(get("f"), "old");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(IncomingFileTest, an_existing_file_keeps_its_mode_unless_told) {
  ASSERT_TRUE(write_file(at("f"), "old", O_CREAT, 0600));
  put("f", "new");
  EXPECT_EQ(get("f"), "new");
  EXPECT_EQ(mode("f") & 07777, 0600u);
  put("f", "newer", {"", "", 640});
  EXPECT_EQ(mode("f") & 07777, 0640u);
}

TEST_F(IncomingFileTest, links_are_followed) {
  ASSERT_TRUE(write_file(at("real"), "old", O_CREAT));
  ASSERT_EQ(::symlink("real", at("link").c_str()), 0);
  put("link", "new");
  EXPECT_EQ(get("real"), "new");
  EXPECT_TRUE(S_ISLNK(mode("link")));
  ASSERT_EQ(::symlink("later", at("dangling").c_str()), 0);
  put("dangling", "x");
  EXPECT_EQ(get("later"), "x");
}

TEST_F(IncomingFileTest, several_names_stay_one_file) {
  ASSERT_TRUE(write_file(at("a"), "old content", O_CREAT));
  ASSERT_EQ(::link(at("a").c_str(), at("b").c_str()), 0);
  put("a", "new");
  EXPECT_EQ(get("b"), "new");
}

TEST_F(IncomingFileTest, refuses) {
  EXPECT_FALSE(IncomingFile::create(root_));
  ASSERT_TRUE(write_file(at("f"), "", O_CREAT));
  EXPECT_FALSE(IncomingFile::create(at("f/x")));
  auto file = IncomingFile::create(at("n"));
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->commit({"no-such-user-here", "", 0}));
  auto bad_mode = IncomingFile::create(at("n"));
  EXPECT_FALSE(bad_mode->commit({"", "", 888}));
}

}  // namespace
}  // namespace osb::execd
