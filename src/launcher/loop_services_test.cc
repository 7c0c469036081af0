#include "launcher/loop_fixture.h"

namespace osb::launcher {
namespace {

TEST_F(LoopTest, AServiceThatNobodyNeedsIsStartedWhenSomebodyDoes) {
  ServiceSpec lazy = spec("egress", {Verb::callers});
  Fd door(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  lazy.wakes = {door.get(), table_.calls.get()};
  open({spec("server"), lazy});
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
  EXPECT_TRUE(lives("egress").empty());
  ::eventfd_write(table_.calls.get(), 1);
  ASSERT_TRUE(until([&] { return lives("egress").size() == 1; }));
  ask(now("egress"), 5, CallersRequest{});
  EXPECT_EQ(hear(now("egress")).tag, 5u);
  ::kill(now("egress").pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives("egress").size() == 2; })) << "once it was needed it is kept";
}

TEST_F(LoopTest, AServiceThatDiesIsStartedAgainAndOthersStay) {
  open({spec("server"), spec("egress", {})});
  for (size_t i = 1; i < 4; ++i) {
    ::kill(now().pid, SIGKILL);
    ASSERT_TRUE(until([&] { return lives().size() == i + 1; }));
  }
  EXPECT_EQ(lives("egress").size(), 1u);
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
}

TEST_F(LoopTest, AnEssentialServiceThatCannotStartEndsTheLauncher) {
  exits_with_ = kCannotStart;
  open();
  ASSERT_TRUE(until([&] { return !loop_->turn(); }));
  EXPECT_EQ(loop_->exit_status(), kCannotStart);
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, AnotherServiceThatCannotStartIsDoneWithout) {
  ServiceSpec extra = spec("extra", {});
  extra.is_essential = false;
  open({spec("server"), extra});
  // As its own status would say.
  Life& life = now("extra");
  ::kill(life.pid, SIGKILL);
  exits_with_ = kCannotStart;
  ASSERT_TRUE(until([&] { return lives("extra").size() == 2; }));
  for (int i = 0; i < 30; ++i) {
    nudge();
    ASSERT_TRUE(loop_->turn());
  }
  EXPECT_EQ(lives("extra").size(), 2u);
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
}

TEST_F(LoopTest, AsksItsServicesToEndAndEndsWithThem) {
  open({spec("server"), spec("egress", {})});
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_TRUE(until([&] { return !loop_->turn(); }));
  EXPECT_EQ(loop_->exit_status(), 0);
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, OneThatDoesNotEndIsKilledAfterAWhile) {
  obeys_ = false;
  open();
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  auto before = std::chrono::steady_clock::now();
  while (loop_->turn()) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(190));
}

TEST_F(LoopTest, AskedTwiceDoesNotWait) {
  obeys_ = false;
  ServiceSpec patient = spec("server");
  patient.grace = std::chrono::seconds(60);
  open({patient});
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_TRUE(loop_->turn());
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  while (loop_->turn()) {
  }
  EXPECT_EQ(loop_->exit_status(), 0);
}

TEST_F(LoopTest, StopsDuringAStart) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  while (loop_->turn()) {
  }
  // The sandbox goes on by itself; the next service finds it.
  EXPECT_TRUE(table_.killed.empty());
  EXPECT_EQ(loop_->exit_status(), 0);
}

}  // namespace
}  // namespace osb::launcher
