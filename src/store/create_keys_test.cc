#include "store/create_keys.h"

#include <gtest/gtest.h>

#include "store/store.h"

namespace osb::store {
namespace {

WallTime at(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(CreateKeys, AreTheirOwnersAndAreKeptForADay) {
  auto store = std::move(*Store::open_in_memory());
  CreateKeys& keys = store->create_keys();
  ASSERT_TRUE(keys.put({"me", "k", "f1", "id1", at(100)}));
  ASSERT_TRUE(keys.put({"you", "k", "f2", "id2", at(100)}));
  EXPECT_EQ((*keys.find("me", "k", at(101)))->sandbox_id, "id1");
  EXPECT_EQ((*keys.find("you", "k", at(101)))->fingerprint, "f2");
  EXPECT_FALSE(*keys.find("me", "other", at(101)));
  EXPECT_FALSE(*keys.find("me", "k", at(100 + 86401))) << "older than a day";
  ASSERT_TRUE(keys.put({"me", "k", "f3", "id3", at(200)}));
  EXPECT_EQ((*keys.find("me", "k", at(201)))->sandbox_id, "id3") << "in place of the earlier one";

  EXPECT_FALSE(*keys.prune(at(100 + 86401)));
  EXPECT_FALSE(*keys.find("you", "k", at(100)));
  EXPECT_TRUE(*keys.find("me", "k", at(201)));
}

TEST(CreateKeys, AreForgottenInSteps) {
  auto store = std::move(*Store::open_in_memory());
  CreateKeys& keys = store->create_keys();
  for (int64_t i = 0; i < CreateKeys::kPruneStep + 1; ++i)
    ASSERT_TRUE(keys.put({"me", std::to_string(i), "f", "id", at(1)}));
  EXPECT_TRUE(*keys.prune(at(100000)));
  EXPECT_FALSE(*keys.prune(at(100000)));
  EXPECT_FALSE(*keys.find("me", "0", at(1)));
}

}  // namespace
}  // namespace osb::store
