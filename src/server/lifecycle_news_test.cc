// What others do to sandboxes, with an engine's own client.

#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

TEST_F(LifecycleTest, ARowFollowsAPauseOfOthers) {
  std::string id = create();
  runtime_.set_paused_by_others(id, true);
  loop_.settle();
  EXPECT_EQ(state(id), "Paused/PAUSED");
  EXPECT_THAT(loop_.await(lifecycle_->reach(me_, id)).error().code, HasSubstr("PAUSED"));
  EXPECT_EQ(loop_.await(lifecycle_->pause(me_, id)).error().kind, sandbox::Failure::Kind::wrong_state);
  EXPECT_TRUE(loop_.await(lifecycle_->resume(me_, id))) << "whoever paused it";
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_FALSE(runtime_.sandboxes.at(id)->paused);
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Paused", "Resumed"));
}

TEST_F(LifecycleTest, ARowFollowsAResumeOfOthers) {
  std::string id = create();
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  runtime_.set_paused_by_others(id, false);
  loop_.settle();
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_TRUE(loop_.await(lifecycle_->reach(me_, id)));
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Paused", "Resumed"));
}

TEST_F(LifecycleTest, AChangeOfOursComesFirst) {
  std::string id = create();
  runtime_.pause_hold.reset();
  auto pausing = loop_.begin(lifecycle_->pause(me_, id));
  loop_.settle();
  runtime_.set_paused_by_others(id, true);
  runtime_.set_paused_by_others(id, false);
  loop_.settle();
  runtime_.pause_hold.set();
  EXPECT_TRUE(loop_.finish(pausing));
  loop_.settle();
  EXPECT_EQ(state(id), "Paused/PAUSED") << "news that came meanwhile is old";
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Paused"));
}

TEST_F(LifecycleTest, NewsOfWhatHasEndedOrIsUnknownIsNone) {
  std::string ended = create(), gone = create(), unseen = create();
  runtime_.end_of(ended, {End::Kind::exited, 0, ""});
  loop_.settle();
  runtime_.set_paused_by_others(ended, true);
  loop_.settle();
  EXPECT_EQ(state(ended), "Terminated/ENTRYPOINT_EXITED");
  ASSERT_TRUE(store_->sandboxes().remove(gone));
  runtime_.set_paused_by_others(gone, true);
  loop_.settle();
  EXPECT_EQ(state(gone), "SANDBOX::NOT_FOUND");
  runtime_.sandboxes.at(unseen)->claim.record = "{broken";
  runtime_.set_paused_by_others(unseen, true);
  loop_.settle();
  EXPECT_EQ(state(unseen), "Running/RUNNING");
}

TEST_F(LifecycleTest, AServerThatEndsHearsNothing) {
  std::string id = create();
  loop_.await(lifecycle_->close());
  runtime_.set_paused_by_others(id, true);
  loop_.settle();
  EXPECT_THAT(events(id), ElementsAre("Created", "Running"));
}

TEST_F(LifecycleTest, TroubleIsToldOnce) {
  std::string id = create();
  runtime_.have_trouble(id, "its network is closed");
  runtime_.have_trouble(id, "its network is closed");
  loop_.settle();
  boot();
  runtime_.have_trouble(id, "its network is closed");
  loop_.settle();
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Trouble"));
  EXPECT_EQ(state(id), "Running/RUNNING");
}

}  // namespace
}  // namespace osb::server
