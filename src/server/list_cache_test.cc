#include "server/list_cache.h"

#include <gtest/gtest.h>

namespace osb::server {
namespace {

// As if it had been asked for twice.
void put(ListCache& cache, std::string_view owner, std::string_view query, uint64_t generation,
         const std::string& page) {
  for (int i = 0; i < 2; ++i) cache.put(owner, query, generation, page);
}

TEST(ListCache, KeepsWhatIsAskedForAgain) {
  ListCache cache;
  cache.put("me", "a", 1, "one");
  EXPECT_EQ(cache.find("me", "a", 1), nullptr);
  cache.put("me", "a", 1, "one");
  EXPECT_NE(cache.find("me", "a", 1), nullptr);
  cache.put("me", "a", 2, "two");
  EXPECT_EQ(cache.find("me", "a", 2), nullptr) << "of each state anew";
}

TEST(ListCache, KnowsAPageUntilSomethingChanges) {
  ListCache cache;
  EXPECT_EQ(cache.find("me", "a", 0), nullptr);
  put(cache, "me", "a", 1, "one");
  ASSERT_NE(cache.find("me", "a", 1), nullptr);
  EXPECT_EQ(*cache.find("me", "a", 1), "one");
  EXPECT_EQ(cache.find("me", "b", 1), nullptr);
  EXPECT_EQ(cache.find("me", "a", 2), nullptr);
  put(cache, "me", "b", 2, "two");
  EXPECT_EQ(cache.find("me", "a", 2), nullptr) << "pages of the past are forgotten";
  EXPECT_EQ(*cache.find("me", "b", 2), "two");
}

TEST(ListCache, ShowsNobodyAnothersPage) {
  ListCache cache;
  put(cache, "one", "page=1", 1, "of one");
  EXPECT_EQ(cache.find("two", "page=1", 1), nullptr);
  EXPECT_EQ(cache.find("", "page=1", 1), nullptr);
  put(cache, "two", "page=1", 1, "of two");
  EXPECT_EQ(*cache.find("one", "page=1", 1), "of one");
  EXPECT_EQ(*cache.find("two", "page=1", 1), "of two");
}

TEST(ListCache, IsBounded) {
  ListCache cache;
  put(cache, "me", "huge", 1, std::string(ListCache::kMaxPageBytes + 1, 'x'));
  EXPECT_EQ(cache.find("me", "huge", 1), nullptr);
  size_t known = 0;
  for (int i = 0; i < 100; ++i) put(cache, "me", std::to_string(i), 1, "page");
  for (int i = 0; i < 100; ++i) known += cache.find("me", std::to_string(i), 1) != nullptr;
  EXPECT_EQ(known, ListCache::kMaxPages);
  EXPECT_NE(cache.find("me", "99", 1), nullptr) << "the newest stays";
}

}  // namespace
}  // namespace osb::server
