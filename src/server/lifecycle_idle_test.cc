// Sandboxes that are paused because nobody uses them.

#include "sandbox/create_request.h"
#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

class IdleTest : public LifecycleTest {
 protected:
  std::string make() {
    sandbox::CreateRequest request = plan(seconds(3600));
    request.extensions[sandbox::kIdleExtension] = "1";
    auto made = loop_.await(lifecycle_->create(me_, std::move(request)));
    EXPECT_TRUE(made);
    return made->id;
  }
  // The timer is one of the real clock.
  std::string asleep() {
    std::string id = make();
    lifecycle_->start();
    wait_until([&] { return state(id) == "Paused/IDLE"; });
    EXPECT_TRUE(runtime_.sandboxes.at(id)->paused);
    return id;
  }
};

TEST_F(IdleTest, IsPausedAndAUseWakesIt) {
  std::string id = asleep();
  EXPECT_THAT((*get(id))->status.message, HasSubstr("wakes it"));
  auto reached = loop_.await(lifecycle_->reach(me_, id));
  ASSERT_TRUE(reached) << reached.error().message;
  EXPECT_EQ(reached->row->status.state, State::running);
  EXPECT_FALSE(runtime_.sandboxes.at(id)->paused);
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Paused", "Resumed"));
}

TEST_F(IdleTest, UsesAtTheSameTimeShareOneResume) {
  std::string id = asleep();
  std::vector<std::shared_ptr<TestLoop::Pending<Outcome<Lifecycle::Reached>>>> all;
  for (int i = 0; i < 20; ++i) all.push_back(loop_.begin(lifecycle_->reach(me_, id)));
  for (auto& one : all) EXPECT_TRUE(loop_.finish(one));
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Paused", "Resumed"));
}

TEST_F(IdleTest, AUseThatComesDuringThePauseWaitsAndWakesIt) {
  std::string id = make();
  runtime_.pause_hold.reset();
  lifecycle_->start();
  // The row follows a slow pause.
  wait_until([&] { return state(id) == "Pausing/IDLE"; });
  auto use = loop_.begin(lifecycle_->reach(me_, id));
  loop_.settle();
  EXPECT_FALSE(use->done);
  runtime_.pause_hold.set();
  auto reached = loop_.finish(use);
  ASSERT_TRUE(reached) << reached.error().message;
  EXPECT_EQ(reached->row->status.state, State::running);
  EXPECT_FALSE(runtime_.sandboxes.at(id)->paused);
}

TEST_F(IdleTest, WhatAPersonPausedStaysPaused) {
  std::string id = make();
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  EXPECT_EQ(loop_.await(lifecycle_->reach(me_, id)).error().code, "SANDBOX::PAUSED");
  boot();
  EXPECT_EQ(loop_.await(lifecycle_->reach(me_, id)).error().code, "SANDBOX::PAUSED");
  EXPECT_EQ(state(id), "Paused/PAUSED");
}

TEST_F(IdleTest, APersonMayPauseWhatSleeps) {
  std::string id = asleep();
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  EXPECT_EQ(state(id), "Paused/PAUSED");
  EXPECT_EQ(loop_.await(lifecycle_->reach(me_, id)).error().code, "SANDBOX::PAUSED");
  EXPECT_TRUE(runtime_.sandboxes.at(id)->paused);
  ASSERT_TRUE(loop_.await(lifecycle_->resume(me_, id)));
  EXPECT_EQ(state(id), "Running/RUNNING");
}

TEST_F(IdleTest, ARestartKnowsWhySomethingIsPaused) {
  std::string id = asleep();
  boot();
  EXPECT_EQ(state(id), "Paused/IDLE");
  ASSERT_TRUE(loop_.await(lifecycle_->reach(me_, id)));
  EXPECT_EQ(state(id), "Running/RUNNING");
  // Killed between the freezer and the row, and between a slow pause's two rows.
  runtime_.sandboxes.at(id)->paused = true;
  ASSERT_TRUE(store_->sandboxes().set_status(id, {State::pausing, Reason::idle, "x", clock_.now()}));
  boot();
  EXPECT_EQ(state(id), "Paused/IDLE");
  ASSERT_TRUE(loop_.await(lifecycle_->reach(me_, id)));
}

TEST_F(IdleTest, AUseKeepsItAwake) {
  std::string id = make();
  auto reached = loop_.await(lifecycle_->reach(me_, id));
  ASSERT_TRUE(reached);
  lifecycle_->start();
  loop_.await(io::sleep_for(std::chrono::milliseconds(1300)));
  EXPECT_EQ(state(id), "Running/RUNNING");
  reached->use = {};
  wait_until([&] { return state(id) == "Paused/IDLE"; });
}

TEST_F(IdleTest, OthersMayNotWakeIt) {
  std::string id = asleep();
  Principal other = Principal::owner_named("somebody-else");
  EXPECT_EQ(loop_.await(lifecycle_->reach(other, id)).error().code, "SANDBOX::NOT_FOUND");
  EXPECT_EQ(state(id), "Paused/IDLE");
}

TEST_F(IdleTest, APauseThatFailsIsTriedAgain) {
  std::string id = make();
  runtime_.fail_pause = true;
  lifecycle_->start();
  loop_.await(io::sleep_for(std::chrono::milliseconds(1300)));
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_TRUE(loop_.await(lifecycle_->reach(me_, id)));
  runtime_.fail_pause = false;
  wait_until([&] { return state(id) == "Paused/IDLE"; });
}

}  // namespace
}  // namespace osb::server
