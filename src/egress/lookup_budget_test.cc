#include "egress/lookup_budget.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace osb::egress
