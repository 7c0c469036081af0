#include "egress/lookup_budget.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

namespace osb::egress {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint16_t kA = 1, kTxt = 16;

std::string nth(int n) { return std::to_string(n) + ".zone.test"; }

class LookupBudgetTest : public testing::Test {
 protected:
  // How many of so many new names may be asked.
  int ask(int count) {
    int allowed = 0;
    for (int i = 0; i < count; ++i) allowed += budget_.take(nth(next_++), kA, now_) ? 1 : 0;
    return allowed;
  }
  LookupBudget budget_;
  LookupBudget::Time now_ = LookupBudget::Time() + seconds(100);
  int next_ = 0;
};

TEST_F(LookupBudgetTest, NewNamesHaveAnEnd) {
  EXPECT_EQ(ask(10000), 512);
  EXPECT_EQ(ask(100), 0);
}

TEST_F(LookupBudgetTest, TheyComeBackWithTime) {
  ask(512);
  now_ += milliseconds(500);
  EXPECT_EQ(ask(100), 16);
  now_ += seconds(1000);
  EXPECT_EQ(ask(10000), 512) << "and are not saved up";
}

TEST_F(LookupBudgetTest, TheSameAgainIsFree) {
  ask(511);
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(budget_.take("pypi.org", kA, now_));
  EXPECT_FALSE(budget_.take("files.pypi.org", kA, now_));
  EXPECT_TRUE(budget_.take("pypi.org", kA, now_));
}

TEST_F(LookupBudgetTest, AnotherTypeIsAnotherQuestion) {
  ask(511);
  EXPECT_TRUE(budget_.take("pypi.org", kA, now_));
  EXPECT_FALSE(budget_.take("pypi.org", kTxt, now_));
}

TEST_F(LookupBudgetTest, WhatIsUsedStaysKnownAmongMany) {
  ASSERT_TRUE(budget_.take("pypi.org", kA, now_));
  for (int i = 0; i < 20; ++i) {
    now_ += seconds(10);
    EXPECT_EQ(ask(300), 300);
    EXPECT_TRUE(budget_.take("pypi.org", kA, now_));
  }
  ask(10000);
  EXPECT_TRUE(budget_.take("pypi.org", kA, now_)) << "also when nothing is left";
}

// The standard library's hash takes eight bytes at a time and can be turned around: for any eight bytes there
// are eight more after which it is where it was with others.
class Murmur {
 public:
  static constexpr uint64_t kFactor = 0xc6a4a7935bd1e995, kSeed = 0xc70f6907;
  static uint64_t mix(uint64_t k) {
    k *= kFactor;
    return (k ^ (k >> 47)) * kFactor;
  }
  static uint64_t unmix(uint64_t k) {
    uint64_t inverse = kFactor;
    for (int i = 0; i < 5; ++i) inverse *= 2 - kFactor * inverse;
    k *= inverse;
    return (k ^ (k >> 47)) * inverse;
  }
  // A name that hashes as sixteen times 'a' before the same end.
  static std::string alike(uint64_t first, const std::string& end) {
    uint64_t start = kSeed ^ ((16 + end.size()) * kFactor), a = 0x6161616161616161;
    uint64_t goal = ((start ^ mix(a)) * kFactor) ^ mix(a);
    uint64_t second = unmix(((start ^ mix(first)) * kFactor) ^ goal);
    std::string out(16, '\0');
    std::memcpy(out.data(), &first, 8);
    std::memcpy(out.data() + 8, &second, 8);
    return out + end;
  }
};

TEST_F(LookupBudgetTest, NamesThatAreMadeToHashAlikeAreNotFree) {
  std::string end = ".wild.test", known = std::string(16, 'a') + end;
  auto hash = std::hash<std::string_view>();
  if (hash(Murmur::alike(1, end)) != hash(known)) GTEST_SKIP() << "another standard library";
  ASSERT_TRUE(budget_.take(known, kA, now_));
  ask(511);
  for (uint64_t i = 1; i < 100; ++i) EXPECT_FALSE(budget_.take(Murmur::alike(i, end), kA, now_)) << i;
  EXPECT_TRUE(budget_.take(known, kA, now_));
}

}  // namespace
}  // namespace osb::egress
