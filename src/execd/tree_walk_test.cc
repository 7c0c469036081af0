#include "execd/tree_walk.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "execd/file_ops.h"

namespace osb::execd {
namespace {

using testing::ElementsAre;

class TreeWalkTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/osb-walk-XXXXXX";
    ASSERT_TRUE(::mkdtemp(dir));
    root_ = dir;
    for (const char* name : {"/b", "/b/d", "/b/d/e", "/a"})
      ASSERT_EQ(::mkdir((root_ + name).c_str(), 0755), 0);
    for (const char* name : {"/c", "/b/x", "/b/d/e/f", "/a-1"})
      ASSERT_TRUE(write_file(root_ + name, "", O_CREAT));
    ASSERT_EQ(::symlink("b", (root_ + "/link").c_str()), 0);
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }

  std::vector<std::string> walk(int64_t depth) {
    std::vector<std::string> out;
    auto walk = TreeWalk::open(root_, depth);
    EXPECT_TRUE(walk);
    while (const auto* entry = walk->next()) {
      out.push_back(entry->path.substr(root_.size() + 1));
      EXPECT_TRUE(entry->path.ends_with(entry->name));
    }
    EXPECT_EQ(walk->next(), nullptr);
    return out;
  }

  std::string root_;
};

TEST_F(TreeWalkTest, order_and_depth) {
  EXPECT_THAT(walk(0), ElementsAre());
  EXPECT_THAT(walk(1), ElementsAre("a", "a-1", "b", "c", "link"));
  EXPECT_THAT(walk(2), ElementsAre("a", "a-1", "b", "b/d", "b/x", "c", "link"));
  EXPECT_THAT(walk(INT64_MAX), ElementsAre("a", "a-1", "b", "b/d", "b/d/e", "b/d/e/f", "b/x", "c", "link"));
}

TEST_F(TreeWalkTest, what_vanishes_is_skipped) {
  auto walk = TreeWalk::open(root_, 9);
  ASSERT_TRUE(walk);
  EXPECT_EQ(walk->next()->name, "a");
  ASSERT_TRUE(remove_tree(root_ + "/b"));
  EXPECT_EQ(walk->next()->name, "a-1");
  EXPECT_EQ(walk->next()->name, "c");
}

TEST_F(TreeWalkTest, root_must_be_a_directory) {
  EXPECT_FALSE(TreeWalk::open(root_ + "/nope", 1));
  EXPECT_FALSE(TreeWalk::open(root_ + "/c", 1));
}

}  // namespace
}  // namespace osb::execd
