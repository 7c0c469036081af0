// Several runtimes, engines that are away, slow, forgetful or lying, and two servers on one engine.

#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

using testkit::MemoryEngine;
using testkit::MemoryRuntime;

class RuntimesTest : public LifecycleTest {
 protected:
  RuntimesTest() { runtimes_.add(second_); }
  ~RuntimesTest() override {
    loop_.await(lifecycle_->close());
    loop_.await(second_.close());
  }

  std::string create_in(std::string_view runtime) {
    auto wanted = plan();
    wanted.runtime = runtime;
    auto row = loop_.await(lifecycle_->create(me_, std::move(wanted)));
    EXPECT_TRUE(row) << row.error().message;
    return row ? row->id : "";
  }

  std::shared_ptr<MemoryEngine> engine_ = std::make_shared<MemoryEngine>(loop_.executor());
  MemoryRuntime second_{engine_, "second", "", no_answer};
};

TEST_F(RuntimesTest, ARequestChoosesAndTheRowRemembers) {
  std::string here = create_in(""), there = create_in("second"), named = create_in("fake");
  EXPECT_EQ((*get(here))->runtime, "fake");
  EXPECT_EQ((*get(there))->runtime, "second");
  EXPECT_EQ(runtime_.sandboxes.size(), 2u);
  EXPECT_TRUE(second_.sandboxes.contains(there));
  boot();
  EXPECT_TRUE(second_.adopted.contains(there));
  EXPECT_TRUE(runtime_.adopted.contains(here));
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, there)));
  EXPECT_TRUE(second_.sandboxes.at(there)->paused);
  ASSERT_TRUE(loop_.await(lifecycle_->resume(me_, there)));
  second_.end_of(there, {End::Kind::exited, 3, ""});
  loop_.settle();
  EXPECT_EQ(state(there), "Failed/ENTRYPOINT_FAILED");
  for (const auto& id : {here, there, named}) EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_TRUE(second_.sandboxes.empty());
}

TEST_F(RuntimesTest, AnUnknownRuntimeIsRefusedByName) {
  auto wanted = plan();
  wanted.runtime = "docker";
  auto row = loop_.await(lifecycle_->create(me_, std::move(wanted)));
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().kind, sandbox::Failure::Kind::invalid);
  EXPECT_THAT(row.error().message, HasSubstr("it has: fake, second"));
  EXPECT_EQ(count(), 0);
}

TEST_F(RuntimesTest, OneThatIsNotOfferedKeepsWhatItHas) {
  runtime::Runtimes some(runtimes_.standard());
  some.add(second_, runtime::Runtimes::Offered::no);
  EXPECT_EQ(some.find(second_.name()), nullptr);
  EXPECT_EQ(&some.of(second_.name()), &second_);
  EXPECT_EQ(some.names(), runtimes_.standard().name());
}

TEST_F(RuntimesTest, WhatARuntimeCannotDoIsRefusedWithoutAskingIt) {
  runtime_.abilities.disk = runtime::Ability::cannot("this host has no loop devices");
  auto wanted = plan();
  wanted.limits.disk_bytes = 1 << 30;
  auto row = loop_.await(lifecycle_->create(me_, wanted));
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code, "SANDBOX::INVALID_PARAMETER");
  EXPECT_EQ(row.error().message, "resourceLimits.disk: this host has no loop devices");
  EXPECT_EQ(runtime_.creates, 0);
  wanted.runtime = "second";
  EXPECT_TRUE(loop_.await(lifecycle_->create(me_, wanted))) << "another one can";
}

// An engine that is away at the start loses nothing and comes back by itself.
TEST_F(RuntimesTest, AnEngineThatIsAwayAtTheStartLosesNothing) {
  std::string near = create_in(""), far = create_in("second"), paused = create_in("second"),
              deleted = create_in("second");
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, paused)));
  second_.faults.away = true;
  boot();
  EXPECT_EQ(state(near), "Running/RUNNING");
  EXPECT_EQ(lifecycle_->unreachable(near), nullptr);
  EXPECT_EQ(state(far), "Running/RUNNING") << "not LOST";
  EXPECT_EQ(state(paused), "Paused/PAUSED");
  ASSERT_NE(lifecycle_->unreachable(far), nullptr);
  EXPECT_THAT(lifecycle_->unreachable(far)->message, HasSubstr("runtime second: the engine is away"));
  auto refused = loop_.await(lifecycle_->pause(me_, far));
  EXPECT_EQ(refused.error().kind, sandbox::Failure::Kind::unavailable);
  auto wanted = plan();
  wanted.runtime = "second";
  EXPECT_EQ(loop_.await(lifecycle_->create(me_, wanted)).error().kind, sandbox::Failure::Kind::unavailable);
  EXPECT_EQ(loop_.await(lifecycle_->remove(me_, deleted)).error().kind, sandbox::Failure::Kind::unavailable);
  create_in("");

  second_.faults.away = false;
  wait_until([&] { return lifecycle_->unreachable(far) == nullptr; });
  EXPECT_TRUE(second_.adopted.contains(far));
  EXPECT_EQ(state(far), "Running/RUNNING");
  EXPECT_EQ(state(paused), "Paused/PAUSED");
  wait_until([&] { return state(deleted) == "SANDBOX::NOT_FOUND"; });
  EXPECT_FALSE(second_.sandboxes.contains(deleted));
  second_.end_of(far, {End::Kind::exited, 0, ""});
  wait_until([&] { return state(far) == "Terminated/ENTRYPOINT_EXITED"; });
}

// Sandboxes that were made while the list of the first attempt was awaited are no strangers.
TEST_F(RuntimesTest, ALateRecoveryLeavesNewSandboxesAlone) {
  std::string old = create_in("second");
  second_.faults.away = true;
  boot();
  second_.faults.away = false;
  std::string fresh = create_in("second");
  wait_until([&] { return lifecycle_->unreachable(old) == nullptr; });
  loop_.settle();
  EXPECT_EQ(count(), 2);
  EXPECT_FALSE(second_.adopted.contains(fresh));
  EXPECT_EQ(state(fresh), "Running/RUNNING");
  EXPECT_EQ(second_.sandboxes.size(), 2u);
}

TEST_F(RuntimesTest, WhatIsMadeWhileAListIsAwaitedIsNoStranger) {
  std::string old = create_in("second");
  second_.list_hold.reset();
  boot();
  ASSERT_NE(lifecycle_->unreachable(old), nullptr);
  std::string fresh = create_in("second");
  second_.list_hold.set();
  wait_until([&] { return lifecycle_->unreachable(old) == nullptr; });
  loop_.settle();
  EXPECT_EQ(second_.recalls, 0);
  EXPECT_EQ(second_.destroys, 0);
  EXPECT_EQ(state(fresh), "Running/RUNNING");
}

TEST_F(RuntimesTest, AnEngineThatGoesAwayInTheMiddle) {
  std::string id = create_in("second");
  second_.faults.away = true;
  wait_until([&] { return lifecycle_->unreachable(id) != nullptr; });
  EXPECT_EQ(state(id), "Running/RUNNING");
  second_.faults.away = false;
  wait_until([&] { return lifecycle_->unreachable(id) == nullptr; });
  second_.end_of(id, {End::Kind::exited, 4, ""});
  wait_until([&] { return state(id) == "Failed/ENTRYPOINT_FAILED"; });
}

TEST_F(RuntimesTest, ASlowEngineKeepsNobodyElseWaiting) {
  std::string near = create_in(""), far = create_in("second");
  second_.faults.slow = std::chrono::hours(1);
  auto before = std::chrono::steady_clock::now();
  boot();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_EQ(lifecycle_->unreachable(near), nullptr);
  EXPECT_EQ(state(far), "Running/RUNNING");
  second_.faults.slow = {};
}

TEST_F(RuntimesTest, OneThatTheEngineHasForgottenIsLostAndDeletable) {
  std::string id = create_in("second");
  engine_->forget(id);
  wait_until([&] { return state(id) == "Failed/LOST"; });
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
}

TEST_F(RuntimesTest, LiesEndNothing) {
  std::string id = create_in("second");
  second_.faults.lies_about_ends = true;
  wait_until([&] { return lifecycle_->unreachable(id) != nullptr; });
  EXPECT_EQ(state(id), "Running/RUNNING") << "a watch that ends in an error is no end";
  second_.faults.lies_about_ends = false;
  second_.faults.names_others = true;
  boot();
  EXPECT_EQ(count(), 1) << "what the engine names and does not have gets no row";
  EXPECT_EQ(state(id), "Running/RUNNING");
  second_.faults.keeps_destroyed = true;
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  second_.faults = {};
  boot();
  EXPECT_EQ(state(id), "Running/RUNNING") << "what goes on running has a row, so that somebody can delete it";
  EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, id)));
  EXPECT_TRUE(second_.sandboxes.empty());
}

TEST_F(RuntimesTest, ARowOfARuntimeThatIsNotThereIsKept) {
  sandbox::Sandbox row;
  row.owner = me_.owner;
  row.id = row.handle = "elsewhere";
  row.runtime = "gone";
  row.image = "host";
  row.status = {State::running, Reason::running, "", clock_.now()};
  row.identity = "x";
  ASSERT_TRUE(store_->sandboxes().insert(row));
  boot();
  EXPECT_EQ(state("elsewhere"), "Running/RUNNING");
  ASSERT_NE(lifecycle_->unreachable("elsewhere"), nullptr);
  EXPECT_THAT(lifecycle_->unreachable("elsewhere")->message, HasSubstr("no runtime gone"));
  EXPECT_EQ(loop_.await(lifecycle_->remove(me_, "elsewhere")).error().kind,
            sandbox::Failure::Kind::unavailable);
}

// Two servers on one engine, each with its own state.
TEST_F(RuntimesTest, AnotherOwnersSandboxesAreNotTouched) {
  MemoryRuntime theirs(engine_, "second", "another owner", no_answer);
  store::SqliteRepository other_store(*store::Store::open_in_memory());
  runtime::Runtimes other_runtimes(theirs);
  std::string mine = create_in("second");
  std::string handle = (*get(mine))->handle;
  {
    Lifecycle other(loop_.executor(), other_store, other_runtimes, clock_);
    loop_.await(other.recover());
    loop_.settle();
    EXPECT_EQ(*other_store.store().sandboxes().count(Scope::everybody(), {}), 0)
        << "no row for what is not theirs";
    EXPECT_TRUE(loop_.await(theirs.destroy(handle)));
    EXPECT_EQ(loop_.await(theirs.adopt(handle, "identity of " + handle)).kind,
              runtime::Adoption::Kind::ended);
    auto row = loop_.await(other.create(me_, plan()));
    ASSERT_TRUE(row);
    loop_.await(other.close());
  }
  EXPECT_EQ(second_.sandboxes.size(), 2u);
  boot();
  EXPECT_EQ(second_.sandboxes.size(), 2u);
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(state(mine), "Running/RUNNING");
  loop_.await(theirs.close());
}

}  // namespace
}  // namespace osb::server
