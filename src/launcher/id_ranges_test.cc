#include "launcher/id_ranges.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <filesystem>
#include <set>

namespace osb::launcher {
namespace {

namespace fs = std::filesystem;

// Directories of a file system stand for control groups: they can be made, signed and locked just so.
class Ranges : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ranges-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top = name;
    if (::setxattr(top.c_str(), "trusted.opensandbox.test", "x", 1, 0) < 0)
      GTEST_SKIP() << "only root can sign a directory with a trusted attribute";
  }
  void TearDown() override { fs::remove_all(top); }

  Identity service(const std::string& digit) {
    std::string id(32, digit[0]);
    return {id, "opensandbox-" + id.substr(0, 16)};
  }
  // Its sandboxes run, or do not.
  void populate(const Identity& who, bool populated) {
    fs::create_directories(top + "/" + who.group);
    ASSERT_TRUE(write_file(top + "/" + who.group + "/cgroup.events",
                           populated ? "populated 1\n" : "populated 0\n", O_CREAT | O_TRUNC));
  }
  IdRanges open(const Identity& who, const std::vector<uint32_t>& used = {}) {
    auto ranges = IdRanges::open(top, who, used);
    EXPECT_TRUE(ranges) << ranges.error().message;
    return std::move(*ranges);
  }
  static uint32_t block_of(uint32_t range) { return (range - kFirstId) / kIdsPerSandbox / kRangesPerBlock; }
  size_t claimed() {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(top))
      count += entry.path().filename().string().starts_with("opensandbox-ids-");
    return count;
  }
  std::vector<uint32_t> take(IdRanges& ranges, size_t count) {
    std::vector<uint32_t> taken;
    for (size_t i = 0; i < count; ++i) {
      auto range = ranges.find_free();
      EXPECT_TRUE(range);
      taken.push_back(range.value_or(0));
      ranges.mark(taken.back(), true);
    }
    return taken;
  }

  std::string top;
};

TEST_F(Ranges, TwoServicesNeverShareABlock) {
  IdRanges one = open(service("a")), two = open(service("b"));
  std::set<uint32_t> blocks_of_one;
  for (uint32_t range : take(one, 200)) blocks_of_one.insert(block_of(range));
  EXPECT_EQ(blocks_of_one.size(), 4u);
  for (uint32_t range : take(two, 200)) EXPECT_FALSE(blocks_of_one.contains(block_of(range)));
}

TEST_F(Ranges, TheSameStartingPointIsNoClash) {
  // Both have the same digits in another order of owners: the second finds the lock and goes on.
  Identity who = service("a"), other = who;
  other.group = "opensandbox-bbbbbbbbbbbbbbbb";
  IdRanges one = open(who), two = open(other);
  EXPECT_NE(block_of(*one.find_free()), block_of(*two.find_free()));
}

TEST_F(Ranges, AllTogetherThereAreAsManyAsThereWere) {
  IdRanges ranges = open(service("a"));
  auto all = take(ranges, kRanges);
  EXPECT_EQ(std::set<uint32_t>(all.begin(), all.end()).size(), kRanges);
  EXPECT_EQ(ranges.find_free().error().code, Code::exhausted);
  ranges.mark(all[1000], false);
  EXPECT_EQ(ranges.find_free().value_or(0), all[1000]);
  EXPECT_FALSE(IdRanges::open(top, service("b"), {})) << "nothing is left for another one";
}

TEST_F(Ranges, WhatIsNotNeededIsGivenBack) {
  IdRanges ranges = open(service("a"));
  auto taken = take(ranges, 65);
  EXPECT_EQ(claimed(), 2u);
  ranges.mark(taken.back(), false);
  ranges.give_back(0);
  EXPECT_EQ(claimed(), 1u) << "sandboxes live in the other";
  for (uint32_t range : taken) ranges.mark(range, false);
  ranges.give_back(1);
  EXPECT_EQ(claimed(), 1u) << "one is kept for the next sandbox";
  ranges.give_back(0);
  EXPECT_EQ(claimed(), 0u);
}

TEST_F(Ranges, ABlockIsTakenBackByItsOwner) {
  Identity who = service("a");
  std::vector<uint32_t> used;
  {
    IdRanges first = open(who);
    used = take(first, 3);
    populate(who, true);
  }  // killed
  IdRanges other = open(service("b"));
  EXPECT_NE(block_of(*other.find_free()), block_of(used[0])) << "sandboxes run with these ids";
  IdRanges again = open(who, used);
  EXPECT_EQ(again.foreign(), 0u);
  EXPECT_EQ(block_of(*again.find_free()), block_of(used[0]));
  EXPECT_TRUE(again.is_taken(used[1]));
  EXPECT_NE(*again.find_free(), used[0]);
}

TEST_F(Ranges, AbandonedBlocksAreTakenOver) {
  Identity who = service("a");
  {
    IdRanges gone = open(who);
    take(gone, kRanges);
  }  // killed; it had all of them
  populate(who, true);
  EXPECT_FALSE(IdRanges::open(top, service("b"), {})) << "its sandboxes run";
  populate(who, false);
  EXPECT_TRUE(IdRanges::open(top, service("b"), {})) << "they have ended";
  fs::remove_all(top + "/" + who.group);
  EXPECT_TRUE(IdRanges::open(top, service("c"), {})) << "they and their group are gone";
}

TEST_F(Ranges, AHalfMadeClaimIsNobodys) {
  for (uint32_t block = 0; block < kBlocks; ++block)
    fs::create_directory(top + "/opensandbox-ids-" + std::to_string(block));
  EXPECT_TRUE(IdRanges::open(top, service("a"), {}));
}

TEST_F(Ranges, BlocksOfExistingSandboxesComeFirst) {
  uint32_t old = kFirstId + 70 * kIdsPerSandbox;  // wherever an earlier version put it
  IdRanges ranges = open(service("a"), {old, 12345});
  EXPECT_EQ(block_of(*ranges.find_free()), block_of(old));
  EXPECT_TRUE(ranges.is_taken(old));
  EXPECT_FALSE(ranges.is_taken(12345));
  IdRanges other = open(service("b"), {old});
  EXPECT_EQ(other.foreign(), 1u);
  EXPECT_NE(block_of(*other.find_free()), block_of(old));
}

TEST_F(Ranges, PreparesBeforeTheLastOneIsGone) {
  IdRanges ranges = open(service("a"));
  ranges.prepare();
  EXPECT_EQ(claimed(), 1u);
  take(ranges, 60);
  ranges.prepare();
  EXPECT_EQ(claimed(), 2u);
}

TEST(RangesWithoutRoot, AreNone) {
  IdRanges none = IdRanges::none();
  none.prepare();
  EXPECT_EQ(none.find_free().value_or(1), 0u);
  none.mark(0, true);
  EXPECT_EQ(none.find_free().value_or(1), 0u);
  none.give_back(0);
}

}  // namespace
}  // namespace osb::launcher
