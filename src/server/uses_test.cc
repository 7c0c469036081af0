#include "server/uses.h"

#include <gmock/gmock.h>

#include "server/test_loop.h"

namespace osb::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Now = Uses::Now;
using namespace std::chrono_literals;

class UsesTest : public testing::Test {
 protected:
  Uses::Time later(std::chrono::seconds by) { return std::chrono::steady_clock::now() + by; }
  TestLoop loop_;
  Uses uses_{loop_.executor()};
};

TEST_F(UsesTest, IsIdleAfterItsTimeAndTakenOnce) {
  uses_.watch("a", 10s, Now::awake);
  uses_.watch("b", 20s, Now::awake);
  EXPECT_THAT(uses_.take_idle(later(9s)), IsEmpty());
  EXPECT_THAT(uses_.take_idle(later(11s)), ElementsAre("a"));
  EXPECT_THAT(uses_.take_idle(later(21s)), ElementsAre("b"));
  uses_.touch("a");
  uses_.touch("b");
  EXPECT_THAT(uses_.take_idle(later(21s)), UnorderedElementsAre("a", "b"));
}

TEST_F(UsesTest, IsNotIdleWhileAnyUseIsHeld) {
  uses_.watch("a", 10s, Now::awake);
  Uses::Use one = uses_.begin("a");
  {
    Uses::Use other = uses_.begin("a");
    EXPECT_FALSE(uses_.is_idle("a", later(100s)));
  }
  EXPECT_FALSE(uses_.is_idle("a", later(100s)));
  Uses::Use moved = std::move(one);
  EXPECT_FALSE(uses_.is_idle("a", later(100s)));
  moved = {};
  EXPECT_FALSE(uses_.is_idle("a", later(9s))) << "the time begins with the end of the last use";
  EXPECT_TRUE(uses_.is_idle("a", later(11s)));
}

TEST_F(UsesTest, OneThatSleepsIsNotIdleAgain) {
  uses_.watch("a", 10s, Now::asleep);
  EXPECT_TRUE(uses_.is_asleep("a"));
  EXPECT_THAT(uses_.take_idle(later(100s)), IsEmpty());
  uses_.set_asleep("a", Now::awake);
  EXPECT_FALSE(uses_.is_asleep("a"));
  EXPECT_THAT(uses_.take_idle(later(11s)), ElementsAre("a"));
}

TEST_F(UsesTest, OthersAreNobodysBusiness) {
  Uses::Use none = uses_.begin("a");
  uses_.touch("a");
  uses_.set_asleep("a", Now::asleep);
  EXPECT_FALSE(uses_.is_asleep("a"));
  EXPECT_FALSE(uses_.is_idle("a", later(100s)));
}

TEST_F(UsesTest, AUseMayOutliveTheWatching) {
  uses_.watch("a", 10s, Now::awake);
  Uses::Use use = uses_.begin("a");
  uses_.forget("a");
  uses_.watch("a", 10s, Now::awake);
  use = {};
  EXPECT_TRUE(uses_.is_idle("a", later(11s)));
}

TEST_F(UsesTest, WaitsWithoutATimerUntilSomethingCanBecomeIdle) {
  uses_.watch("a", 1s, Now::awake);
  Uses::Use use = uses_.begin("a");
  bool woken = false;
  struct Waiting {
    static io::Task<> go(Uses& uses, bool& woken) {
      co_await uses.wait();
      woken = true;
    }
  };
  loop_.background().spawn(Waiting::go(uses_, woken));
  loop_.settle();
  EXPECT_FALSE(woken);
  use = {};
  loop_.settle();
  EXPECT_TRUE(woken);
}

}  // namespace
}  // namespace osb::server
