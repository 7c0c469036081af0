#include "server/lifecycle.h"

#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

TEST_F(LifecycleTest, ACreatedSandboxRunsAndIsKnown) {
  std::string id = create();
  EXPECT_TRUE(is_uuid(id));
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_THAT(events(id), ElementsAre("Created", "Running"));
  const auto& spec = runtime_.sandboxes.at(id)->spec;
  EXPECT_EQ(spec.env, (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"OPENSANDBOX_ID", id}}));
  EXPECT_EQ((*store_->sandboxes().find(id))->identity, "identity of " + spec.handle);
}

TEST_F(LifecycleTest, TheRowIsThereBeforeTheSandbox) {
  runtime_.hold.reset();
  auto pending = loop_.begin(lifecycle_->create(plan()));
  loop_.settle();
  ASSERT_EQ(runtime_.creates, 1);
  EXPECT_EQ(*store_->sandboxes().count({.states = std::vector{State::pending}, .metadata = {}}), 1);
  runtime_.hold.set();
  EXPECT_TRUE(loop_.finish(pending));
}

TEST_F(LifecycleTest, AFailedCreationLeavesNothingAndIsExplained) {
  using Kind = CreateFailure::Kind;
  struct Case {
    Kind kind;
    int status;
    const char* code;
  };
  for (Case c : {Case{Kind::image_not_found, 400, "IMAGE::NOT_FOUND"},
                 {Kind::bad_entrypoint, 400, "SANDBOX::INVALID_ENTRYPOINT"},
                 {Kind::entry_ended, 400, "SANDBOX::ENTRYPOINT_EXITED"},
                 {Kind::bad_limit, 400, "SANDBOX::INVALID_PARAMETER"},
                 {Kind::overloaded, 429, "SANDBOX::TOO_MANY_REQUESTS"},
                 {Kind::step_failed, 500, "SANDBOX::START_FAILED"}}) {
    runtime_.next_failure = CreateFailure{c.kind, {Code::internal, 0, "mount proc: denied"}};
    auto row = loop_.await(lifecycle_->create(plan()));
    ASSERT_FALSE(row);
    EXPECT_EQ(row.error().status, c.status);
    EXPECT_EQ(row.error().code, c.code);
    EXPECT_THAT(row.error().message, HasSubstr("mount proc: denied"));
    EXPECT_EQ(row.error().retry_after_seconds.has_value(), c.status == 429);
  }
  EXPECT_EQ(*store_->sandboxes().count({}), 0);
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(LifecycleTest, WhatTheRuntimeCannotDoIsRefusedBeforeARowExists) {
  auto impossible = plan();
  impossible.image = "missing";
  auto row = loop_.await(lifecycle_->create(impossible));
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code, "IMAGE::NOT_FOUND");
  EXPECT_EQ(runtime_.creates, 0);
}

TEST_F(LifecycleTest, AFailedCreationThatCannotBeCleanedUpIsTriedAgain) {
  runtime_.next_failure = CreateFailure{CreateFailure::Kind::step_failed, {Code::internal, 0, "x"}};
  runtime_.fail_destroy = true;
  ASSERT_FALSE(loop_.await(lifecycle_->create(plan())));
  EXPECT_EQ(*store_->sandboxes().count({.states = std::vector{State::stopping}, .metadata = {}}), 1);
  runtime_.fail_destroy = false;
  wait_until([this] { return *store_->sandboxes().count({}) == 0; });
}

TEST_F(LifecycleTest, ACallerThatGoesAwayDoesNotStopTheCreation) {
  runtime_.hold.reset();
  io::TaskGroup callers(loop_.executor());
  struct Call {
    static io::Task<> create(Lifecycle& lifecycle, api::CreatePlan plan) {
      co_await lifecycle.create(std::move(plan));
    }
  };
  callers.spawn(Call::create(*lifecycle_, plan()));
  loop_.settle();
  loop_.await(callers.close());
  runtime_.hold.set();
  loop_.settle();
  EXPECT_EQ(*store_->sandboxes().count({.states = std::vector{State::running}, .metadata = {}}), 1);
  EXPECT_EQ(runtime_.sandboxes.size(), 1u);
}

TEST_F(LifecycleTest, EndsHaveTheirReasons) {
  struct Case {
    End end;
    const char *state, *message;
  };
  const Case cases[] = {
      {{End::Kind::exited, 0, ""}, "Terminated/ENTRYPOINT_EXITED", "code 0"},
      {{End::Kind::exited, 3, ""}, "Failed/ENTRYPOINT_FAILED", "code 3"},
      {{End::Kind::signalled, 11, ""}, "Failed/KILLED_BY_SIGNAL", "signal 11"},
      {{End::Kind::out_of_memory, 9, ""}, "Failed/OUT_OF_MEMORY", "memory"},
      {{End::Kind::host_restarted, 0, ""}, "Failed/HOST_RESTARTED", "restarted"},
      {{End::Kind::lost, 0, "what is known"}, "Failed/LOST", "what is known"},
  };
  for (const Case& c : cases) {
    std::string id = create();
    clock_.advance(seconds(1));
    runtime_.end_of(id, c.end);
    loop_.settle();
    EXPECT_EQ(state(id), c.state);
    auto row = *lifecycle_->get(id);
    EXPECT_THAT(row->status.message, HasSubstr(c.message));
    EXPECT_EQ(row->status.changed, clock_.now());
    EXPECT_EQ(ended_.back(), id);
    EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Ended"));
    EXPECT_TRUE(runtime_.sandboxes.contains(id)) << "its files stay until it is deleted";
  }
}

TEST_F(LifecycleTest, DeleteRemovesEverythingButTheEvents) {
  std::string id = create();
  EXPECT_TRUE(loop_.await(lifecycle_->remove(id)));
  loop_.settle();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted"));
  EXPECT_THAT(ended_, ElementsAre(id));
  auto again = loop_.await(lifecycle_->remove(id));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().status, 404);
}

TEST_F(LifecycleTest, DeleteOfOneThatEndedByItself) {
  std::string id = create();
  runtime_.end_of(id, {End::Kind::exited, 0, ""});
  loop_.settle();
  EXPECT_TRUE(loop_.await(lifecycle_->remove(id)));
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
}

TEST_F(LifecycleTest, ConcurrentDeletesAllSucceed) {
  std::string id = create();
  runtime_.destroy_hold.reset();
  auto first = loop_.begin(lifecycle_->remove(id));
  auto second = loop_.begin(lifecycle_->remove(id));
  loop_.settle();
  EXPECT_EQ(state(id), "Stopping/DELETED");
  runtime_.destroy_hold.set();
  EXPECT_TRUE(loop_.finish(first));
  EXPECT_TRUE(loop_.finish(second));
  EXPECT_EQ(runtime_.destroys, 1);
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted"));
}

TEST_F(LifecycleTest, DeleteDuringCreateWaitsAndWins) {
  runtime_.hold.reset();
  auto creating = loop_.begin(lifecycle_->create(plan()));
  loop_.settle();
  std::string id;
  ASSERT_TRUE(store_->sandboxes().list({}, 1, 0, [&](const store::Sandbox& row) { id = row.id; }));
  auto removing = loop_.begin(lifecycle_->remove(id));
  loop_.settle();
  EXPECT_EQ(runtime_.destroys, 0);
  runtime_.hold.set();
  EXPECT_TRUE(loop_.finish(creating));
  EXPECT_TRUE(loop_.finish(removing));
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(LifecycleTest, AFailedDeleteSaysSoAndCanBeRepeated) {
  std::string id = create();
  runtime_.fail_destroy = true;
  auto removed = loop_.await(lifecycle_->remove(id));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, "SANDBOX::DELETE_FAILED");
  EXPECT_EQ(state(id), "Stopping/DELETED");
  EXPECT_EQ(lifecycle_->renew(id, clock_.now() + seconds(99)).error().status, 404) << "it is going";
  EXPECT_EQ(lifecycle_->patch_metadata(id, {{"a", "b"}}).error().status, 404);
  runtime_.fail_destroy = false;
  EXPECT_TRUE(loop_.await(lifecycle_->remove(id)));
}

TEST_F(LifecycleTest, ExpiryRemovesWhatIsDueAndNothingElse) {
  std::string soon = create(seconds(60)), later = create(seconds(120)), never = create(std::nullopt);
  clock_.advance(seconds(59));
  round();
  EXPECT_EQ(state(soon), "Running/RUNNING");
  clock_.advance(seconds(1));
  round();
  EXPECT_EQ(state(soon), "SANDBOX::NOT_FOUND");
  EXPECT_THAT(events(soon), ElementsAre("Created", "Running", "Expired"));
  EXPECT_EQ(state(later), "Running/RUNNING");
  clock_.advance(std::chrono::hours(24 * 365));
  round();
  EXPECT_EQ(state(later), "SANDBOX::NOT_FOUND");
  EXPECT_EQ(state(never), "Running/RUNNING");
}

TEST_F(LifecycleTest, RenewMovesTheExpiry) {
  std::string id = create(seconds(60));
  EXPECT_EQ(lifecycle_->renew(id, clock_.now()).error().code, "SANDBOX::INVALID_EXPIRATION");
  EXPECT_EQ(*lifecycle_->renew(id, clock_.now() + seconds(600)), clock_.now() + seconds(600));
  clock_.advance(seconds(61));
  round();
  EXPECT_EQ(state(id), "Running/RUNNING");
  ASSERT_TRUE(lifecycle_->renew(id, clock_.now() + seconds(1))) << "shortening is allowed";
  clock_.advance(seconds(1));
  round();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");

  std::string forever = create(std::nullopt);
  auto refused = lifecycle_->renew(forever, clock_.now() + seconds(600));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 409);
}

TEST_F(LifecycleTest, ARenewalThatComesBeforeTheRemovalSavesIt) {
  std::string id = create(seconds(60));
  clock_.advance(seconds(60));
  ASSERT_TRUE(lifecycle_->expire_due());  // the removal is started, but has not run yet
  ASSERT_TRUE(lifecycle_->renew(id, clock_.now() + seconds(60)));
  loop_.settle();
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_EQ(runtime_.destroys, 0);
}

TEST_F(LifecycleTest, DeleteAndExpiryAtTheSameTimeRemoveOnce) {
  std::string id = create(seconds(60));
  clock_.advance(seconds(60));
  runtime_.destroy_hold.reset();
  auto removing = loop_.begin(lifecycle_->remove(id));
  round();
  runtime_.destroy_hold.set();
  EXPECT_TRUE(loop_.finish(removing));
  loop_.settle();
  EXPECT_EQ(runtime_.destroys, 1);
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted"));
  EXPECT_EQ(lifecycle_->expiring(), 0u);
}

TEST_F(LifecycleTest, AnExpiryThatFailsIsNotRepeatedAtOnce) {
  std::string id = create(seconds(60));
  clock_.advance(seconds(60));
  runtime_.fail_destroy = true;
  round();
  round();
  EXPECT_EQ(runtime_.destroys, 1);
  EXPECT_EQ(state(id), "Stopping/EXPIRED");
  EXPECT_EQ(lifecycle_->expiring(), 1u);
}

TEST_F(LifecycleTest, MetadataIsMerged) {
  std::string id = create();
  EXPECT_EQ(lifecycle_->patch_metadata(id, {{"a", "1"}, {"b", "2"}})->metadata, R"({"a":"1","b":"2"})");
  EXPECT_EQ(lifecycle_->patch_metadata(id, {{"a", std::nullopt}})->metadata, R"({"b":"2"})");
  EXPECT_EQ(lifecycle_->patch_metadata(id, {})->metadata, R"({"b":"2"})");
  EXPECT_EQ((*lifecycle_->get(id))->metadata, R"({"b":"2"})");
  EXPECT_EQ(lifecycle_->patch_metadata("nope", {}).error().status, 404);
}

TEST_F(LifecycleTest, ARestartAdoptsWhatRuns) {
  std::string id = create(seconds(60));
  ASSERT_TRUE(lifecycle_->renew(id, clock_.now() + seconds(600)));
  boot();
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_TRUE(runtime_.adopted.contains(id));
  EXPECT_EQ((*lifecycle_->get(id))->expires, clock_.now() + seconds(600)) << "renewals are kept";
  runtime_.end_of(id, {End::Kind::exited, 3, ""});
  loop_.settle();
  EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED") << "an adopted sandbox is watched";
}

TEST_F(LifecycleTest, TheRuntimeKnowsASandboxByAHandleThatSaysNothingAboutItsId) {
  std::string id = create();
  std::string handle = (*lifecycle_->get(id))->handle;
  EXPECT_TRUE(is_uuid(handle));
  EXPECT_NE(handle, id);
  EXPECT_EQ(runtime_.sandboxes.at(id)->spec.handle, handle);
  boot();
  EXPECT_EQ((*lifecycle_->get(id))->handle, handle) << "it stays the same";
}

TEST_F(LifecycleTest, ARestartAdoptsMany) {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) all.insert(create());
  boot();
  EXPECT_EQ(runtime_.adopted, all);
  EXPECT_EQ(*store_->sandboxes().count({.states = std::vector{State::running}, .metadata = {}}), 100);
}

TEST_F(LifecycleTest, ARestartLearnsOfEndsInBetween) {
  std::string exited = create(), lost = create();
  loop_.await(lifecycle_->close());
  runtime_.end_of(exited, {End::Kind::exited, 0, ""});
  runtime_.sandboxes.erase(lost);
  boot();
  EXPECT_EQ(state(exited), "Terminated/ENTRYPOINT_EXITED");
  EXPECT_EQ(state(lost), "Failed/LOST");
  boot();
  EXPECT_EQ(state(lost), "Failed/LOST") << "a stored end stays as it is";
}

TEST_F(LifecycleTest, ARestartRemovesWhatIsHalfMade) {
  // Killed before the runtime was called, and after it.
  put_row("before", State::pending, "");
  put_row("after", State::pending, "");
  runtime_.sandboxes["after"] = std::make_shared<FakeRuntime::Sandbox>(loop_.executor());
  boot();
  EXPECT_EQ(*store_->sandboxes().count({}), 0);
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(LifecycleTest, ARestartRemovesWhatHasNoRowAndNoProcess) {
  runtime_.sandboxes["orphan"] = std::make_shared<FakeRuntime::Sandbox>(loop_.executor());
  std::string kept = create();
  boot();
  EXPECT_EQ(runtime_.sandboxes.size(), 1u);
  EXPECT_TRUE(runtime_.sandboxes.contains(kept));
}

TEST_F(LifecycleTest, ARestartFinishesRemovals) {
  std::string id = create(std::nullopt);
  runtime_.fail_destroy = true;
  ASSERT_FALSE(loop_.await(lifecycle_->remove(id)));
  runtime_.fail_destroy = false;
  boot();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted")) << "its cause is kept";
}

TEST_F(LifecycleTest, AServerThatIsStoppedDuringACreateLeavesItToTheNextOne) {
  runtime_.hold.reset();
  auto job = loop_.begin(lifecycle_->create(plan()));
  loop_.settle();
  loop_.await(lifecycle_->close());
  EXPECT_EQ(*store_->sandboxes().count({}), 1);
  runtime_.hold.set();
  boot();
  EXPECT_EQ(*store_->sandboxes().count({}), 0);
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(LifecycleTest, TheTimerFindsAnExpiryByItself) {
  std::string id = create(seconds(60));
  clock_.advance(seconds(61));
  lifecycle_->start();
  loop_.settle();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
}

TEST_F(LifecycleTest, PauseAndResumeAreStatesWithEvents) {
  std::string id = create();
  EXPECT_EQ(loop_.await(lifecycle_->resume(id)).error().code, "SANDBOX::NOT_PAUSED");
  runtime_.pause_hold.reset();
  auto pausing = loop_.begin(lifecycle_->pause(id));
  while (state(id) == "Running/RUNNING") loop_.settle();
  EXPECT_EQ(state(id), "Pausing/PAUSING");
  runtime_.pause_hold.set();
  EXPECT_TRUE(loop_.finish(pausing));
  EXPECT_EQ(state(id), "Paused/PAUSED");
  EXPECT_EQ(loop_.await(lifecycle_->pause(id)).error().code, "SANDBOX::NOT_RUNNING");
  runtime_.pause_hold.reset();
  auto resuming = loop_.begin(lifecycle_->resume(id));
  while (state(id) == "Paused/PAUSED") loop_.settle();
  EXPECT_EQ(state(id), "Resuming/RESUMING");
  runtime_.pause_hold.set();
  EXPECT_TRUE(loop_.finish(resuming));
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Paused", "Resumed"));
}

TEST_F(LifecycleTest, StoppedTimeGrowsOnlyWhilePaused) {
  std::string id = create();
  EXPECT_EQ(lifecycle_->stopped_time(id), io::Duration::zero());
  ASSERT_TRUE(loop_.await(lifecycle_->pause(id)));
  auto first = lifecycle_->stopped_time(id);
  while (lifecycle_->stopped_time(id) == first) loop_.settle();
  ASSERT_TRUE(loop_.await(lifecycle_->resume(id)));
  auto total = lifecycle_->stopped_time(id);
  EXPECT_GT(total, first);
  loop_.settle();
  EXPECT_EQ(lifecycle_->stopped_time(id), total);
}

TEST_F(LifecycleTest, APauseThatFailsLeavesTheSandboxRunning) {
  std::string id = create();
  runtime_.fail_pause = true;
  auto failed = loop_.await(lifecycle_->pause(id));
  EXPECT_EQ(failed.error().status, 500);
  EXPECT_EQ(failed.error().code, "SANDBOX::PAUSE_FAILED");
  EXPECT_EQ(state(id), "Running/RUNNING");
  runtime_.fail_pause = false;
  ASSERT_TRUE(loop_.await(lifecycle_->pause(id)));
  runtime_.fail_pause = true;
  EXPECT_EQ(loop_.await(lifecycle_->resume(id)).error().code, "SANDBOX::RESUME_FAILED");
  EXPECT_EQ(state(id), "Paused/PAUSED");
}

TEST_F(LifecycleTest, ARuntimeThatCannotPauseSaysSo) {
  std::string id = create();
  runtime_.cannot_pause = true;
  auto refused = loop_.await(lifecycle_->pause(id));
  EXPECT_EQ(refused.error().status, 400);
  EXPECT_EQ(refused.error().code, "SANDBOX::UNSUPPORTED");
  EXPECT_FALSE(refused.error().remedy.empty());
  EXPECT_EQ(state(id), "Running/RUNNING");
}

TEST_F(LifecycleTest, APausedSandboxExpiresEndsAndIsDeleted) {
  std::string a = create(), b = create(), c = create();
  for (const auto& id : {a, b, c}) ASSERT_TRUE(loop_.await(lifecycle_->pause(id)));
  EXPECT_TRUE(loop_.await(lifecycle_->remove(a)));
  EXPECT_EQ(state(a), "SANDBOX::NOT_FOUND");
  runtime_.end_of(b, {End::Kind::signalled, 9, ""});
  loop_.settle();
  EXPECT_EQ(state(b), "Failed/KILLED_BY_SIGNAL");
  EXPECT_EQ(loop_.await(lifecycle_->resume(b)).error().code, "SANDBOX::NOT_PAUSED");
  clock_.advance(seconds(61));
  round();
  EXPECT_EQ(state(c), "SANDBOX::NOT_FOUND");
  EXPECT_THAT(events(c), ElementsAre("Created", "Running", "Paused", "Expired"));
}

TEST_F(LifecycleTest, APauseThatLosesTheRaceAgainstADeleteFindsNothing) {
  std::string id = create();
  runtime_.destroy_hold.reset();
  auto removing = loop_.begin(lifecycle_->remove(id));
  auto pausing = loop_.begin(lifecycle_->pause(id));
  loop_.settle();
  runtime_.destroy_hold.set();
  EXPECT_TRUE(loop_.finish(removing));
  EXPECT_EQ(loop_.finish(pausing).error().code, "SANDBOX::NOT_FOUND");
}

}  // namespace
}  // namespace osb::server
