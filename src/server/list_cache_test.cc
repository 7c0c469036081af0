#include "server/list_cache.h"

#include <gtest/gtest.h>

namespace osb::server {
namespace {

TEST(ListCache, KnowsAPageUntilSomethingChanges) {
  ListCache cache;
  EXPECT_EQ(cache.find("a", 0), nullptr);
  cache.put("a", 1, "one");
  ASSERT_NE(cache.find("a", 1), nullptr);
  EXPECT_EQ(*cache.find("a", 1), "one");
  EXPECT_EQ(cache.find("b", 1), nullptr);
  EXPECT_EQ(cache.find("a", 2), nullptr);
  cache.put("b", 2, "two");
  EXPECT_EQ(cache.find("a", 2), nullptr) << "pages of the past are forgotten";
  EXPECT_EQ(*cache.find("b", 2), "two");
}

TEST(ListCache, IsBounded) {
  ListCache cache;
  cache.put("huge", 1, std::string(ListCache::kMaxPageBytes + 1, 'x'));
  EXPECT_EQ(cache.find("huge", 1), nullptr);
  size_t known = 0;
  for (int i = 0; i < 100; ++i) cache.put(std::to_string(i), 1, "page");
  for (int i = 0; i < 100; ++i) known += cache.find(std::to_string(i), 1) != nullptr;
  EXPECT_EQ(known, ListCache::kMaxPages);
  EXPECT_NE(cache.find("99", 1), nullptr) << "the newest stays";
}

}  // namespace
}  // namespace osb::server
