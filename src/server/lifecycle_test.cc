#include "server/lifecycle.h"

#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

TEST_F(LifecycleTest, ACreatedSandboxRunsAndIsKnown) {
  std::string id = create();
  EXPECT_TRUE(is_uuid(id));
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_THAT(events(id), ElementsAre("Created", "Running"));
  const auto& [spec, claim] = std::tie(runtime_.sandboxes.at(id)->spec, runtime_.sandboxes.at(id)->claim);
  EXPECT_EQ(claim.env,
            (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"OPENSANDBOX_ID", id}}));
  EXPECT_EQ((*store_->sandboxes().find(Scope::everybody(), id))->identity, "identity of " + spec.handle);
}

TEST_F(LifecycleTest, AVolumeOfAnotherSizeIsTold) {
  runtime_.abilities.volumes = runtime::Ability::can();
  runtime_.volumes[me_.owner] = {{.name = "small", .size_bytes = 1 << 25}, {.name = "open"}};
  sandbox::Volume volume{.backend = sandbox::Volume::Backend::claim, .source = "small", .mount_path = "/a"};
  auto events_with = [&](std::string source, std::optional<int64_t> size) {
    volume.source = std::move(source);
    volume.size_bytes = size;
    sandbox::CreateRequest request = plan();
    request.volumes = {volume};
    auto row = loop_.await(lifecycle_->create(me_, request));
    EXPECT_TRUE(row) << row.error().message;
    return *store_->events().of(Scope::everybody(), row->id, 100);
  };
  EXPECT_EQ(events_with("small", 1 << 25).size(), 2u);
  EXPECT_EQ(events_with("small", std::nullopt).size(), 2u);
  EXPECT_EQ(events_with("new", 1 << 25).size(), 2u);
  for (auto [name, size, says] : {std::tuple("small", 1 << 26, "holds 33554432 bytes, and not the 67108864"),
                                  {"small", 1 << 24, "holds 33554432 bytes"},
                                  {"open", 1 << 24, "has no limit"}}) {
    auto told = events_with(name, size);
    ASSERT_EQ(told.size(), 3u) << name;
    EXPECT_EQ(told.back().kind, "Warning");
    EXPECT_THAT(told.back().detail, HasSubstr(says));
  }
}

TEST_F(LifecycleTest, TheRowIsThereBeforeTheSandbox) {
  runtime_.hold.reset();
  auto pending = loop_.begin(lifecycle_->create(me_, plan()));
  loop_.settle();
  ASSERT_EQ(runtime_.creates, 1);
  EXPECT_EQ(count({.states = std::vector{State::pending}}), 1);
  runtime_.hold.set();
  EXPECT_TRUE(loop_.finish(pending));
}

TEST_F(LifecycleTest, AFailedCreationLeavesNothingAndIsExplained) {
  using Kind = CreateFailure::Kind;
  using sandbox::Failure;
  struct Case {
    Kind kind;
    Failure::Kind failure;
    const char* code;
  };
  for (Case c : {Case{Kind::image_not_found, Failure::Kind::invalid, "IMAGE::NOT_FOUND"},
                 {Kind::image_unreachable, Failure::Kind::failed, "IMAGE::UNREACHABLE"},
                 {Kind::image_refused, Failure::Kind::invalid, "IMAGE::UNAUTHORIZED"},
                 {Kind::image_invalid, Failure::Kind::failed, "IMAGE::INVALID"},
                 {Kind::bad_entrypoint, Failure::Kind::invalid, "SANDBOX::INVALID_ENTRYPOINT"},
                 {Kind::entry_ended, Failure::Kind::invalid, "SANDBOX::ENTRYPOINT_EXITED"},
                 {Kind::bad_limit, Failure::Kind::invalid, "SANDBOX::INVALID_PARAMETER"},
                 {Kind::unsupported, Failure::Kind::unsupported, "SANDBOX::UNSUPPORTED"},
                 {Kind::overloaded, Failure::Kind::too_many, "SANDBOX::TOO_MANY_REQUESTS"},
                 {Kind::unavailable, Failure::Kind::unavailable, "SANDBOX::OVERLOADED"},
                 {Kind::step_failed, Failure::Kind::failed, "SANDBOX::START_FAILED"}}) {
    runtime_.next_failure = CreateFailure{c.kind, {Code::internal, 0, "mount proc: denied"}};
    auto row = loop_.await(lifecycle_->create(me_, plan()));
    ASSERT_FALSE(row);
    EXPECT_EQ(row.error().kind, c.failure);
    EXPECT_EQ(row.error().code, c.code);
    EXPECT_THAT(row.error().message, HasSubstr("mount proc: denied"));
  }
  EXPECT_EQ(count(), 0);
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(LifecycleTest, WhatTheRuntimeCannotDoIsRefusedBeforeARowExists) {
  auto impossible = plan();
  impossible.image = "missing";
  auto row = loop_.await(lifecycle_->create(me_, impossible));
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code, "IMAGE::NOT_FOUND");
  EXPECT_EQ(runtime_.creates, 0);
}

TEST_F(LifecycleTest, AFailedCreationThatCannotBeCleanedUpIsTriedAgain) {
  runtime_.next_failure = CreateFailure{CreateFailure::Kind::step_failed, {Code::internal, 0, "x"}};
  runtime_.fail_destroy = true;
  ASSERT_FALSE(loop_.await(lifecycle_->create(me_, plan())));
  EXPECT_EQ(count({.states = std::vector{State::stopping}}), 1);
  runtime_.fail_destroy = false;
  wait_until([this] { return count() == 0; });
}

TEST_F(LifecycleTest, ACallerThatGoesAwayDoesNotStopTheCreation) {
  runtime_.hold.reset();
  io::TaskGroup callers(loop_.executor());
  struct Call {
    static io::Task<> create(Lifecycle& lifecycle, Principal who, sandbox::CreateRequest plan) {
      co_await lifecycle.create(std::move(who), std::move(plan));
    }
  };
  callers.spawn(Call::create(*lifecycle_, me_, plan()));
  loop_.settle();
  loop_.await(callers.close());
  runtime_.hold.set();
  loop_.settle();
  EXPECT_EQ(count({.states = std::vector{State::running}}), 1);
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
    auto row = *get(id);
    EXPECT_THAT(row->status.message, HasSubstr(c.message));
    EXPECT_EQ(row->status.changed, clock_.now());
    EXPECT_EQ(ended_.back(), id);
    EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Ended"));
    EXPECT_TRUE(runtime_.sandboxes.contains(id)) << "its files stay until it is deleted";
  }
}

TEST_F(LifecycleTest, DeleteRemovesEverythingButTheEvents) {
  std::string id = create();
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  loop_.settle();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted"));
  EXPECT_THAT(ended_, ElementsAre(id));
  auto again = loop_.await(lifecycle_->remove(me_, id));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, sandbox::Failure::Kind::not_found);
}

TEST_F(LifecycleTest, DeleteOfOneThatEndedByItself) {
  std::string id = create();
  runtime_.end_of(id, {End::Kind::exited, 0, ""});
  loop_.settle();
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
}

TEST_F(LifecycleTest, ConcurrentDeletesAllSucceed) {
  std::string id = create();
  runtime_.destroy_hold.reset();
  auto first = loop_.begin(lifecycle_->remove(me_, id));
  auto second = loop_.begin(lifecycle_->remove(me_, id));
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
  auto creating = loop_.begin(lifecycle_->create(me_, plan()));
  loop_.settle();
  std::string id;
  ASSERT_TRUE(store_->sandboxes().list(Scope::everybody(), {}, 1, 0, [&](const auto& row) { id = row->id; }));
  auto removing = loop_.begin(lifecycle_->remove(me_, id));
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
  auto removed = loop_.await(lifecycle_->remove(me_, id));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, "SANDBOX::DELETE_FAILED");
  EXPECT_EQ(state(id), "Stopping/DELETED");
  EXPECT_EQ(renew(id, clock_.now() + seconds(99)).error().kind, sandbox::Failure::Kind::not_found)
      << "it is going";
  EXPECT_EQ(patch_metadata(id, {{"a", "b"}}).error().kind, sandbox::Failure::Kind::not_found);
  runtime_.fail_destroy = false;
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
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
  EXPECT_EQ(renew(id, clock_.now()).error().code, "SANDBOX::INVALID_EXPIRATION");
  EXPECT_EQ(*renew(id, clock_.now() + seconds(600)), clock_.now() + seconds(600));
  clock_.advance(seconds(61));
  round();
  EXPECT_EQ(state(id), "Running/RUNNING");
  ASSERT_TRUE(renew(id, clock_.now() + seconds(1))) << "shortening is allowed";
  clock_.advance(seconds(1));
  round();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");

  std::string forever = create(std::nullopt);
  auto refused = renew(forever, clock_.now() + seconds(600));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, sandbox::Failure::Kind::wrong_state);
}

TEST_F(LifecycleTest, NothingLivesLongerThanTheLongestLife) {
  std::string before = create(std::nullopt);
  lifecycle_->live_at_most(seconds(100));
  WallTime latest = clock_.now() + seconds(100);
  EXPECT_EQ((*get(create(std::nullopt)))->expires, latest) << "what never expires";
  EXPECT_EQ((*get(create(seconds(1000))))->expires, latest) << "what was asked for elsewhere";
  std::string id = create(seconds(60));
  EXPECT_EQ((*get(id))->expires, clock_.now() + seconds(60));
  EXPECT_TRUE(renew(id, latest));
  auto refused = renew(id, latest + seconds(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "SANDBOX::INVALID_EXPIRATION");
  EXPECT_EQ(refused.error().kind, sandbox::Failure::Kind::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("2026-01-02T03:05:45Z"));
  ASSERT_TRUE(renew(id, clock_.now() + seconds(70)));
  ASSERT_TRUE(loop_.await(lifecycle_->extend(id, seconds(1000)))) << "a use renews as far as it may";
  EXPECT_EQ((*get(id))->expires, latest);
  EXPECT_FALSE((*get(before))->expires) << "of before";
}

TEST_F(LifecycleTest, ARenewalThatComesBeforeTheRemovalSavesIt) {
  std::string id = create(seconds(60));
  clock_.advance(seconds(60));
  runtime_.pause_hold.reset();
  auto pausing = loop_.begin(lifecycle_->pause(me_, id));
  loop_.settle();
  ASSERT_TRUE(loop_.await(lifecycle_->expire_due()));  // the removal is started, and waits for the pause
  ASSERT_TRUE(renew(id, clock_.now() + seconds(60)));
  runtime_.pause_hold.set();
  ASSERT_TRUE(loop_.finish(pausing));
  loop_.settle();
  EXPECT_EQ(state(id), "Paused/PAUSED");
  EXPECT_EQ(lifecycle_->expiring(), 0u);
  EXPECT_EQ(runtime_.destroys, 0);
}

TEST_F(LifecycleTest, DeleteAndExpiryAtTheSameTimeRemoveOnce) {
  std::string id = create(seconds(60));
  clock_.advance(seconds(60));
  runtime_.destroy_hold.reset();
  auto removing = loop_.begin(lifecycle_->remove(me_, id));
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
  EXPECT_EQ(patch_metadata(id, {{"a", "1"}, {"b", "2"}})->metadata,
            (sandbox::Metadata{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(patch_metadata(id, {{"a", std::nullopt}})->metadata, (sandbox::Metadata{{"b", "2"}}));
  EXPECT_EQ(patch_metadata(id, {})->metadata, (sandbox::Metadata{{"b", "2"}}));
  EXPECT_EQ((*get(id))->metadata, (sandbox::Metadata{{"b", "2"}}));
  EXPECT_EQ(patch_metadata("nope", {}).error().kind, sandbox::Failure::Kind::not_found);
}

TEST_F(LifecycleTest, ARestartAdoptsWhatRuns) {
  std::string id = create(seconds(60));
  ASSERT_TRUE(renew(id, clock_.now() + seconds(600)));
  boot();
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_TRUE(runtime_.adopted.contains(id));
  EXPECT_EQ((*get(id))->expires, clock_.now() + seconds(600)) << "renewals are kept";
  runtime_.end_of(id, {End::Kind::exited, 3, ""});
  loop_.settle();
  EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED") << "an adopted sandbox is watched";
}

TEST_F(LifecycleTest, TheRuntimeKnowsASandboxByAHandleThatSaysNothingAboutItsId) {
  std::string id = create();
  std::string handle = (*get(id))->handle;
  EXPECT_TRUE(is_uuid(handle));
  EXPECT_NE(handle, id);
  EXPECT_EQ(runtime_.sandboxes.at(id)->spec.handle, handle);
  boot();
  EXPECT_EQ((*get(id))->handle, handle) << "it stays the same";
}

TEST_F(LifecycleTest, ARestartAdoptsMany) {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) all.insert(create());
  boot();
  EXPECT_EQ(runtime_.adopted, all);
  EXPECT_EQ(count({.states = std::vector{State::running}}), 100);
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
  EXPECT_EQ(count(), 0);
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
  ASSERT_FALSE(loop_.await(lifecycle_->remove(me_, id)));
  runtime_.fail_destroy = false;
  boot();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted")) << "its cause is kept";
}

TEST_F(LifecycleTest, AServerThatIsStoppedDuringACreateLeavesItToTheNextOne) {
  runtime_.hold.reset();
  auto job = loop_.begin(lifecycle_->create(me_, plan()));
  loop_.settle();
  loop_.await(lifecycle_->close());
  EXPECT_EQ(count(), 1);
  runtime_.hold.set();
  boot();
  EXPECT_EQ(count(), 0);
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
  EXPECT_EQ(loop_.await(lifecycle_->resume(me_, id)).error().code, "SANDBOX::NOT_PAUSED");
  runtime_.pause_hold.reset();
  auto pausing = loop_.begin(lifecycle_->pause(me_, id));
  while (state(id) == "Running/RUNNING") loop_.settle();
  EXPECT_EQ(state(id), "Pausing/PAUSING");
  runtime_.pause_hold.set();
  EXPECT_TRUE(loop_.finish(pausing));
  EXPECT_EQ(state(id), "Paused/PAUSED");
  EXPECT_EQ(loop_.await(lifecycle_->pause(me_, id)).error().code, "SANDBOX::NOT_RUNNING");
  runtime_.pause_hold.reset();
  auto resuming = loop_.begin(lifecycle_->resume(me_, id));
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
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  auto first = lifecycle_->stopped_time(id);
  while (lifecycle_->stopped_time(id) == first) loop_.settle();
  ASSERT_TRUE(loop_.await(lifecycle_->resume(me_, id)));
  auto total = lifecycle_->stopped_time(id);
  EXPECT_GT(total, first);
  loop_.settle();
  EXPECT_EQ(lifecycle_->stopped_time(id), total);
}

TEST_F(LifecycleTest, APauseThatFailsLeavesTheSandboxRunning) {
  std::string id = create();
  runtime_.fail_pause = true;
  auto failed = loop_.await(lifecycle_->pause(me_, id));
  EXPECT_EQ(failed.error().kind, sandbox::Failure::Kind::failed);
  EXPECT_EQ(failed.error().code, "SANDBOX::PAUSE_FAILED");
  EXPECT_EQ(state(id), "Running/RUNNING");
  runtime_.fail_pause = false;
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  runtime_.fail_pause = true;
  EXPECT_EQ(loop_.await(lifecycle_->resume(me_, id)).error().code, "SANDBOX::RESUME_FAILED");
  EXPECT_EQ(state(id), "Paused/PAUSED");
}

TEST_F(LifecycleTest, ARuntimeThatCannotPauseSaysSo) {
  std::string id = create();
  runtime_.abilities.pause = runtime::Ability::cannot("no cgroup");
  auto refused = loop_.await(lifecycle_->pause(me_, id));
  EXPECT_EQ(refused.error().kind, sandbox::Failure::Kind::unsupported);
  EXPECT_EQ(refused.error().code, "SANDBOX::UNSUPPORTED");
  EXPECT_FALSE(refused.error().remedy.empty());
  EXPECT_EQ(state(id), "Running/RUNNING");
}

TEST_F(LifecycleTest, APausedSandboxExpiresEndsAndIsDeleted) {
  std::string a = create(), b = create(), c = create();
  for (const auto& id : {a, b, c}) ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, a)));
  EXPECT_EQ(state(a), "SANDBOX::NOT_FOUND");
  runtime_.end_of(b, {End::Kind::signalled, 9, ""});
  loop_.settle();
  EXPECT_EQ(state(b), "Failed/KILLED_BY_SIGNAL");
  EXPECT_EQ(loop_.await(lifecycle_->resume(me_, b)).error().code, "SANDBOX::NOT_PAUSED");
  clock_.advance(seconds(61));
  round();
  EXPECT_EQ(state(c), "SANDBOX::NOT_FOUND");
  EXPECT_THAT(events(c), ElementsAre("Created", "Running", "Paused", "Expired"));
}

TEST_F(LifecycleTest, APauseThatLosesTheRaceAgainstADeleteFindsNothing) {
  std::string id = create();
  runtime_.destroy_hold.reset();
  auto removing = loop_.begin(lifecycle_->remove(me_, id));
  auto pausing = loop_.begin(lifecycle_->pause(me_, id));
  loop_.settle();
  runtime_.destroy_hold.set();
  EXPECT_TRUE(loop_.finish(removing));
  EXPECT_EQ(loop_.finish(pausing).error().code, "SANDBOX::NOT_FOUND");
}

}  // namespace
}  // namespace osb::server
