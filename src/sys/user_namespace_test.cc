#include "sys/user_namespace.h"

#include <gtest/gtest.h>

namespace osb::sys {
namespace {

IdRange find(std::string_view text) { return subordinate_ids(text, "ann", 1000); }

TEST(SubordinateIds, AreFoundByNameOrNumber) {
  EXPECT_EQ(find("bob:1:2\nann:100000:65536\n").first, 100000u);
  EXPECT_EQ(find("bob:1:2\nann:100000:65536\n").count, 65536u);
  EXPECT_EQ(find("1000:231072:65536").first, 231072u);
  EXPECT_EQ(subordinate_ids(":5:6\n1000:7:8", "", 1000).first, 7u)
      << "a user without a name has no empty one";
}

TEST(SubordinateIds, TheLargestRangeWins) {
  EXPECT_EQ(find("ann:100000:10\nann:200000:65536\nann:300000:100\n").first, 200000u);
}

TEST(SubordinateIds, WhatIsNoRangeIsNone) {
  for (const char* text :
       {"", "\n\n", "ann", "ann:1", "ann:1:2:3", "ann:x:2", "ann:1:x", "ann:-1:5", "ann::5",
        "ann:1:", "annabel:1:2", "ANN:1:2", "10000:1:2", "ann:0:65536", "ann:4294967295:1",
        "ann:4294967290:100", "ann:99999999999:1", "# ann:1:2", "ann:100000:0"}) {
    EXPECT_EQ(find(text).count, 0u) << text;
  }
}

TEST(MapArguments, RootIsTheUserAndTheRestComesFromTheRange) {
  EXPECT_EQ(map_arguments(1000, {100000, 65536}), "0 1000 1 1 100000 65535");
  EXPECT_EQ(map_arguments(1000, {100000, 20}), "0 1000 1 1 100000 20");
  EXPECT_EQ(map_arguments(1000, {100000, 1'000'000}), "0 1000 1 1 100000 65535");
}

TEST(IdsFromZero, CountsWhatIsWithoutAGap) {
  EXPECT_EQ(ids_from_zero("         0       1000          1\n"), 1u);
  EXPECT_EQ(ids_from_zero("         0       1000          1\n         1     100000      65535\n"), 65536u);
  EXPECT_EQ(ids_from_zero("1 100000 65535\n0 1000 1\n"), 65536u);
  EXPECT_EQ(ids_from_zero("0 1000 1\n5 100000 100\n"), 1u);
  EXPECT_EQ(ids_from_zero("0 0 4294967295\n"), 4294967295u);
  EXPECT_EQ(ids_from_zero("1000 1000 1\n"), 0u);
  EXPECT_EQ(ids_from_zero(""), 0u);
  EXPECT_EQ(ids_from_zero("0 x 1"), 0u);
}

TEST(IdentityMap, HasTheUsersOwnIdOnALineOfItsOwn) {
  EXPECT_EQ(identity_map(1), "0 0 1");
  EXPECT_EQ(identity_map(65536), "0 0 1\n1 1 65535");
}

TEST(UserNamespaceObstacle, NamesTheSwitch) {
  EXPECT_EQ(obstacle({"", "96343", ""}), "");
  EXPECT_EQ(obstacle({"1", "96343", "0"}), "");
  EXPECT_NE(obstacle({"0", "96343", ""}).find("kernel.unprivileged_userns_clone=1"), std::string::npos);
  EXPECT_NE(obstacle({"", "0", ""}).find("user.max_user_namespaces="), std::string::npos);
  EXPECT_NE(obstacle({"1", "96343", "1"}).find("kernel.apparmor_restrict_unprivileged_userns=0"),
            std::string::npos);
}

}  // namespace
}  // namespace osb::sys
