// What must not be lost: ends, pauses, removals, and what runs without a row.

#include "server/lifecycle_fixture.h"
#include "server/record.h"

namespace osb::server {
namespace {

TEST_F(LifecycleTest, AnEndIsSettledOnlyWhenItIsStored) {
  std::string id = create();
  {
    auto busy = store_->begin();  // nothing else can be stored meanwhile
    ASSERT_TRUE(busy);
    End end{End::Kind::exited, 7, ""};
    end.output = "last words";
    runtime_.end_of(id, end);
    loop_.settle();
    EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED") << "it has happened, whatever the disk says";
    EXPECT_TRUE(runtime_.settled.empty()) << "nothing is acknowledged that is not stored";
  }
  wait_until([&] { return runtime_.settled.contains(id); });
  EXPECT_EQ((*store_->outputs().find(Scope::everybody(), id))->text, "last words");
}

TEST_F(LifecycleTest, AnEndThatCouldNotBeStoredIsToldToTheNextServer) {
  std::string id = create();
  {
    auto busy = store_->begin();
    runtime_.end_of(id, {End::Kind::exited, 7, ""});
    loop_.settle();
    loop_.await(lifecycle_->close());  // gives it a while
  }
  EXPECT_TRUE(runtime_.settled.empty());
  boot();
  EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED");
  EXPECT_TRUE(runtime_.settled.contains(id));
}

TEST_F(LifecycleTest, AnEndThatIsStoredButNotSettledIsSettledByTheNextServer) {
  std::string id = create();
  runtime_.fail_settle = true;
  runtime_.end_of(id, {End::Kind::exited, 7, ""});
  loop_.settle();
  EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED");
  runtime_.fail_settle = false;
  boot();
  EXPECT_TRUE(runtime_.settled.contains(id));
  EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED");
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Ended"));
}

TEST_F(LifecycleTest, WhatIsNotKnownToHaveEndedIsAskedAboutAgain) {
  std::string id = create();
  runtime_.unknown = Error{Code::timeout, 0, "launcher: no answer"};
  boot();
  EXPECT_EQ(state(id), "Running/RUNNING");
  ASSERT_NE(lifecycle_->unreachable(id), nullptr);
  auto refused = loop_.await(lifecycle_->pause(me_, id));
  EXPECT_EQ(refused.error().kind, sandbox::Failure::Kind::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("launcher: no answer"));
  boot();
  EXPECT_EQ(state(id), "Running/RUNNING") << "however often";
  runtime_.unknown.reset();
  wait_until([&] { return lifecycle_->unreachable(id) == nullptr; });
  EXPECT_TRUE(runtime_.adopted.contains(id));
  runtime_.end_of(id, {End::Kind::exited, 0, ""});
  loop_.settle();
  EXPECT_EQ(state(id), "Terminated/ENTRYPOINT_EXITED") << "it is watched";
}

TEST_F(LifecycleTest, WhatCannotBeAskedAboutCanBeDeleted) {
  std::string id = create();
  runtime_.unknown = Error{Code::timeout, 0, "launcher: no answer"};
  boot();
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  EXPECT_TRUE(runtime_.sandboxes.empty());
  wait_until([&] { return lifecycle_->unreachable(id) == nullptr; });
}

TEST_F(LifecycleTest, APauseThatCannotBeStoredIsTakenBack) {
  std::string id = create();
  {
    auto busy = store_->begin();
    auto paused = loop_.await(lifecycle_->pause(me_, id));
    ASSERT_FALSE(paused);
    EXPECT_EQ(paused.error().kind, sandbox::Failure::Kind::failed);
  }
  EXPECT_FALSE(runtime_.sandboxes.at(id)->paused);
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_EQ(lifecycle_->stopped_time(id), io::Duration::zero());
}

TEST_F(LifecycleTest, AResumeHelpsWhateverTheRowSays) {
  std::string id = create();
  runtime_.sandboxes.at(id)->paused = true;
  EXPECT_TRUE(loop_.await(lifecycle_->resume(me_, id)));
  EXPECT_FALSE(runtime_.sandboxes.at(id)->paused);
  EXPECT_EQ(state(id), "Running/RUNNING");
  EXPECT_EQ(loop_.await(lifecycle_->resume(me_, id)).error().code, "SANDBOX::NOT_PAUSED");
  // And one that runs, though its row says that it is paused.
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  runtime_.sandboxes.at(id)->paused = false;
  EXPECT_TRUE(loop_.await(lifecycle_->resume(me_, id)));
  EXPECT_EQ(state(id), "Running/RUNNING");
}

TEST_F(LifecycleTest, ARestartFollowsTheHostUnlessNobodyWasToldOfAPause) {
  struct Case {
    State recorded;
    bool paused;
    const char* state;
  };
  for (const Case& c : {Case{State::pausing, true, "Paused/PAUSED"},
                        {State::pausing, false, "Running/RUNNING"},
                        {State::resuming, true, "Running/RUNNING"},
                        {State::resuming, false, "Running/RUNNING"},
                        {State::paused, true, "Paused/"},
                        {State::running, false, "Running/"},
                        {State::running, true, "Running/"},
                        {State::paused, false, "Running/RUNNING"}}) {
    std::string id = create();
    runtime_.sandboxes.at(id)->paused = c.paused;
    ASSERT_TRUE(store_->sandboxes().set_status(id, {c.recorded, Reason::none, "x", clock_.now()}));
    boot();
    EXPECT_EQ(state(id), c.state);
    EXPECT_EQ(runtime_.sandboxes.at(id)->paused, state(id).starts_with("Paused")) << c.state;
    ASSERT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  }
}

TEST_F(LifecycleTest, AFailedDeleteIsTriedAgainByTheSameProcess) {
  std::string id = create(std::nullopt);
  runtime_.fail_destroy = true;
  ASSERT_FALSE(loop_.await(lifecycle_->remove(me_, id)));
  runtime_.fail_destroy = false;
  wait_until([&] { return state(id) == "SANDBOX::NOT_FOUND"; });
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Deleted"));
  EXPECT_EQ(lifecycle_->expiring(), 0u);
}

TEST_F(LifecycleTest, RemovalsThatHangDoNotStarveOthers) {
  std::vector<std::string> hanging;
  for (int i = 0; i < 64; ++i) hanging.push_back(create(seconds(60)));
  clock_.advance(seconds(61));
  runtime_.destroy_hold.reset();
  round();
  EXPECT_EQ(lifecycle_->expiring(), 32u);
  // Longer than a removal takes.
  wait_until([this] {
    EXPECT_TRUE(loop_.await(lifecycle_->expire_due()));
    return lifecycle_->expiring() == 64u;
  });
  runtime_.destroy_hold.set();
  wait_until([this] { return count() == 0; });
}

TEST_F(LifecycleTest, WhatRunsOutlivesItsRow) {
  std::string id = create(seconds(60)), endless = create(std::nullopt);
  ASSERT_TRUE(patch_metadata(id, {{"a", "1"}}));
  ASSERT_TRUE(renew(id, clock_.now() + seconds(600)));
  loop_.settle();
  sandbox::Sandbox before = **get(id);
  loop_.await(lifecycle_->close());
  for (const auto& name : {id, endless}) ASSERT_TRUE(store_->sandboxes().remove(name));
  boot();
  EXPECT_EQ(runtime_.sandboxes.size(), 2u);
  EXPECT_EQ(state(id), "Running/RUNNING");
  sandbox::Sandbox after = **get(id);
  EXPECT_EQ(after.metadata, (sandbox::Metadata{{"a", "1"}}));
  EXPECT_EQ(after.expires, before.expires) << "a renewal is not lost";
  EXPECT_EQ(after.created, before.created);
  EXPECT_EQ(after.entrypoint, before.entrypoint);
  EXPECT_EQ(after.env_names, before.env_names);
  EXPECT_EQ(after.handle, before.handle);
  EXPECT_EQ(after.identity, before.identity);
  EXPECT_EQ((*get(endless))->expires, std::nullopt);
  EXPECT_THAT(events(id), testing::Contains("Recovered"));
  runtime_.end_of(id, {End::Kind::exited, 3, ""});
  loop_.settle();
  EXPECT_EQ(state(id), "Failed/ENTRYPOINT_FAILED") << "it is watched";
}

TEST_F(LifecycleTest, WhatRunsWithoutARowIsAskedAboutUntilItIsKnown) {
  std::string id = create();
  loop_.await(lifecycle_->close());
  ASSERT_TRUE(store_->sandboxes().remove(id));
  runtime_.unknown = Error{Code::exhausted, ENOMEM, "read its status: Cannot allocate memory"};
  boot();
  EXPECT_EQ(state(id), "SANDBOX::NOT_FOUND");
  EXPECT_EQ(runtime_.destroys, 0) << "nobody knows that it has ended";
  runtime_.unknown.reset();
  wait_until([&] { return state(id) == "Running/RUNNING"; });
}

TEST_F(LifecycleTest, WhatRunsWithoutRowAndRecordIsKeptForADay) {
  std::string old_name = new_uuid7(), handle = new_uuid4();
  for (const auto& name : {old_name, handle}) {
    auto sandbox = std::make_shared<FakeRuntime::Sandbox>(loop_.executor());
    sandbox->identity = "it runs";
    runtime_.sandboxes[name] = sandbox;
  }
  runtime_.sandboxes.at(handle)->claim.record = "{broken";
  boot();
  EXPECT_EQ(state(old_name), "Running/RUNNING");
  EXPECT_EQ((*get(old_name))->expires, clock_.now() + std::chrono::hours(24));
  EXPECT_EQ(count(), 2) << "the other one gets an id of its own";
  EXPECT_EQ(state(handle), "SANDBOX::NOT_FOUND");
  clock_.advance(std::chrono::hours(25));
  round();
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

}  // namespace
}  // namespace osb::server
