#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

// Creates whose image takes longer than anybody waits.
class PendingTest : public LifecycleTest {
 protected:
  PendingTest() {
    lifecycle_->hold_creates_for(std::chrono::milliseconds(20));
    runtime_.prepare_hold.reset();
    runtime_.preparing_what = "pulling app:1: 1 of 9 MB";
  }
  ~PendingTest() override { runtime_.prepare_hold.set(); }

  io::Task<bool> started(std::string id) {
    co_await lifecycle_->wait_started(std::move(id), std::chrono::seconds(10));
    co_return true;
  }

  sandbox::Sandbox announced() {
    auto begun = loop_.begin(lifecycle_->create(me_, plan()));
    loop_.settle();
    clock_.advance(std::chrono::seconds(25));
    auto row = loop_.finish(begun);
    EXPECT_TRUE(row) << row.error().message;
    return row ? *row : sandbox::Sandbox();
  }
};

TEST_F(PendingTest, IsAnnouncedThenRuns) {
  auto row = announced();
  EXPECT_EQ(state(row.id), "Pending/STARTING");
  EXPECT_THAT((*get(row.id))->status.message, HasSubstr("1 of 9 MB"));
  EXPECT_EQ(runtime_.creates, 0);
  auto waiting = loop_.begin(started(row.id));
  loop_.settle();
  EXPECT_FALSE(waiting->done);
  runtime_.prepare_hold.set();
  EXPECT_TRUE(loop_.finish(waiting));
  EXPECT_EQ(state(row.id), "Running/RUNNING");
  EXPECT_THAT(events(row.id), ElementsAre("Created", "Running"));
  EXPECT_EQ(runtime_.sandboxes.size(), 1u);
}

TEST_F(PendingTest, AFailureIsToldInItsState) {
  auto row = announced();
  runtime_.next_prepare_failure =
      CreateFailure{CreateFailure::Kind::image_invalid, {Code::corrupt, 0, "layer 2: tampered with"}};
  runtime_.prepare_hold.set();
  wait_until([&] { return state(row.id) == "Failed/START_FAILED"; });
  EXPECT_THAT((*get(row.id))->status.message, HasSubstr("IMAGE::INVALID"));
  EXPECT_THAT((*get(row.id))->status.message, HasSubstr("tampered with"));
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, row.id)));
  EXPECT_EQ(count(), 0);
}

TEST_F(PendingTest, AStartThatFailsIsToldAsWell) {
  auto row = announced();
  runtime_.next_failure =
      CreateFailure{CreateFailure::Kind::bad_entrypoint, {Code::not_found, 0, "no such program"}};
  runtime_.prepare_hold.set();
  wait_until([&] { return state(row.id) == "Failed/START_FAILED"; });
  EXPECT_THAT((*get(row.id))->status.message, HasSubstr("no such program"));
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(PendingTest, WhatIsDeletedMeanwhileIsNotStarted) {
  auto row = announced();
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, row.id)));
  EXPECT_EQ(count(), 0);
  runtime_.prepare_hold.set();
  EXPECT_TRUE(loop_.await(started(row.id)));
  loop_.settle();
  EXPECT_EQ(runtime_.creates, 0);
  EXPECT_EQ(count(), 0);
}

TEST_F(PendingTest, ARestartOfTheServerIsTheEndOfIt) {
  auto row = announced();
  boot();
  EXPECT_EQ(state(row.id), "Failed/START_FAILED");
  EXPECT_THAT((*get(row.id))->status.message, HasSubstr("create the sandbox again"));
}

TEST_F(PendingTest, WhatNobodyWasToldOfIsGoneAfterARestart) {
  runtime_.prepare_hold.set();
  runtime_.hold.reset();
  auto begun = loop_.begin(lifecycle_->create(me_, plan()));
  loop_.settle();
  ASSERT_EQ(count({.states = std::vector{State::pending}}), 1);
  boot();
  EXPECT_EQ(count(), 0);
  runtime_.hold.set();
}

}  // namespace
}  // namespace osb::server
