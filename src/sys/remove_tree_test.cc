#include "sys/remove_tree.h"
#include "sys/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace osb::sys {
namespace {

class RemoveTree : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-trash-XXXXXX";
    path_ = ::mkdtemp(name);
    trash_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { ::rmdir(path_.c_str()); }

  std::vector<std::string> names() {
    std::vector<std::string> out;
    DIR* dir = ::opendir(path_.c_str());
    while (struct dirent* entry = ::readdir(dir)) {
      if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
    }
    ::closedir(dir);
    return out;
  }
  // As the worker does. The number of rounds it took.
  int empty() {
    int rounds = 0;
    for (auto left = names(); !left.empty() && rounds < 100; left = names(), ++rounds) {
      for (const std::string& name : left) EXPECT_TRUE(remove_from_trash(trash_.get(), name));
    }
    return rounds;
  }

  void deep(const std::string& name, int levels) {
    ASSERT_EQ(::mkdirat(trash_.get(), name.c_str(), 0755), 0);
    Fd dir(::openat(trash_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 1; i < levels; ++i) {
      ASSERT_EQ(::mkdirat(dir.get(), "d", 0755), 0);
      Fd next(::openat(dir.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      dir = std::move(next);
    }
  }

  std::string path_;
  Fd trash_;
};

TEST_F(RemoveTree, FilesLinksAndDirectories) {
  ASSERT_EQ(::mkdirat(trash_.get(), "a", 0755), 0);
  ASSERT_EQ(::mkdirat(trash_.get(), "a/b", 0), 0);
  ASSERT_EQ(::symlinkat("/etc", trash_.get(), "a/link"), 0);
  ASSERT_EQ(::mkfifoat(trash_.get(), "a/pipe", 0600), 0);
  ASSERT_TRUE(write_file_at(trash_.get(), "a/file", "x", O_CREAT));
  EXPECT_EQ(empty(), 1);
  EXPECT_EQ(::access("/etc/passwd", F_OK), 0) << "a link was followed";
}

TEST_F(RemoveTree, NothingThereIsFine) { EXPECT_TRUE(remove_from_trash(trash_.get(), "none")); }

TEST_F(RemoveTree, VeryDeepTreesNeedNoDepth) {
  deep("deep", 3000);
  EXPECT_EQ(empty(), 1);
  EXPECT_TRUE(names().empty());
}

TEST_F(RemoveTree, ManyDeepBranchesStayOneThing) {
  ASSERT_EQ(::mkdirat(trash_.get(), "comb", 0755), 0);
  for (int i = 0; i < 20; ++i) deep("comb/" + std::to_string(i), 50);
  // A turn that ends at once has moved nothing beside the thing, where it would be in the way of others.
  while (!remove_from_trash(trash_.get(), "comb", std::chrono::milliseconds(1)).value())
    ASSERT_EQ(names(), std::vector<std::string>{"comb"});
  EXPECT_TRUE(names().empty());
}

TEST_F(RemoveTree, ATurnEnds) {
  ASSERT_EQ(::mkdirat(trash_.get(), "wide", 0755), 0);
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(write_file_at(trash_.get(), "wide/" + std::to_string(i), "", O_CREAT));
  EXPECT_FALSE(remove_from_trash(trash_.get(), "wide", std::chrono::milliseconds(0)).value());
  EXPECT_EQ(names().size(), 1u);
  EXPECT_TRUE(remove_from_trash(trash_.get(), "wide", std::chrono::hours(1)).value());
  EXPECT_TRUE(names().empty());
}

TEST_F(RemoveTree, TellsWhetherADirectoryIsEmpty) {
  EXPECT_TRUE(is_empty_directory(trash_.get()).value());
  for (const std::string& name : {std::string(255, 'n'), std::string(".hidden"), std::string("...")}) {
    ASSERT_TRUE(write_file_at(trash_.get(), name, "", O_CREAT));
    EXPECT_FALSE(is_empty_directory(trash_.get()).value()) << name;
    ASSERT_EQ(::unlinkat(trash_.get(), name.c_str(), 0), 0);
    EXPECT_TRUE(is_empty_directory(trash_.get()).value()) << name;
  }
}

}  // namespace
}  // namespace osb::sys
