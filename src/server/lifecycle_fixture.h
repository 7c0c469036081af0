#pragma once

// For unit tests of the lifecycle: it, a store in memory, a runtime that makes nothing and a clock that
// stands.

#include <gmock/gmock.h>

#include "base/ids.h"
#include "server/fake_runtime.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"
#include "server/test_loop.h"
#include "store/sqlite_repository.h"

namespace osb::server {

using runtime::CreateFailure;
using runtime::End;
using sandbox::Principal;
using sandbox::Reason;
using sandbox::Scope;
using sandbox::State;
using testing::ElementsAre;
using testing::HasSubstr;

inline io::Task<> no_answer(http::Request&, http::ResponseWriter&) { co_return; }

class LifecycleTest : public testing::Test {
 protected:
  LifecycleTest() : runtime_(loop_.executor(), no_answer), repository_(*store::Store::open_in_memory()) {
    boot();
  }
  ~LifecycleTest() override {
    loop_.await(lifecycle_->close());
    loop_.await(runtime_.close());
  }

  // A new server process over what the old one left: `how` is its manner of going away.
  void boot() {
    if (lifecycle_) loop_.await(lifecycle_->close());
    lifecycle_ = std::make_unique<Lifecycle>(loop_.executor(), repository_, runtimes_, clock_);
    lifecycle_->on_end([this](const std::string& id) { ended_.push_back(id); });
    loop_.await(lifecycle_->recover());
    loop_.settle();
  }

  sandbox::CreateRequest plan(std::optional<seconds> timeout = seconds(60)) {
    sandbox::CreateRequest plan;
    plan.image = "host";
    plan.entrypoint = {"sleep", "9"};
    plan.env = {{"A", "1"}, {"OPENSANDBOX_ID", "forged"}};
    plan.timeout = timeout;
    return plan;
  }
  std::string create(std::optional<seconds> timeout = seconds(60)) {
    auto row = loop_.await(lifecycle_->create(me_, plan(timeout)));
    EXPECT_TRUE(row) << row.error().message;
    return row->id;
  }
  std::string state(const std::string& id) {
    auto row = get(id);
    if (!row) return row.error().code;
    return std::string(to_string((*row)->status.state)) + "/" + std::string(to_string((*row)->status.reason));
  }
  sandbox::Outcome<sandbox::SandboxPtr> get(const std::string& id) {
    return loop_.await(lifecycle_->get(me_, id));
  }
  sandbox::Outcome<WallTime> renew(const std::string& id, WallTime expires) {
    return loop_.await(lifecycle_->renew(me_, id, expires));
  }
  sandbox::Outcome<sandbox::Sandbox> patch_metadata(const std::string& id, sandbox::MetadataPatch patch) {
    return loop_.await(lifecycle_->patch_metadata(me_, id, std::move(patch)));
  }
  int64_t count(const sandbox::Filter& filter = {}) {
    return *store_->sandboxes().count(Scope::everybody(), filter);
  }
  std::vector<std::string> events(const std::string& id) {
    std::vector<std::string> kinds;
    for (auto& event : *store_->events().of(Scope::everybody(), id, 100)) kinds.push_back(event.kind);
    return kinds;
  }
  void put_row(const std::string& id, State state, std::string identity) {
    sandbox::Sandbox row;
    row.id = id;
    row.owner = me_.owner;
    row.handle = id;
    row.image = "host";
    row.status = {state, Reason::none, "x", clock_.now()};
    row.created = clock_.now();
    row.identity = std::move(identity);
    ASSERT_TRUE(store_->sandboxes().insert(row));
  }
  // For what happens after a while.
  template <class Condition>
  void wait_until(Condition condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < deadline) loop_.settle();
    EXPECT_TRUE(condition());
  }
  void round() {
    ASSERT_TRUE(loop_.await(lifecycle_->expire_due()));
    loop_.settle();
  }

  TestLoop loop_;
  ManualClock clock_{*parse_time("2026-01-02T03:04:05Z")};
  FakeRuntime runtime_;
  runtime::Runtimes runtimes_{runtime_};
  store::SqliteRepository repository_;
  store::Store* store_ = &repository_.store();  // to look at rows
  Principal me_ = Principal::owner_named(sandbox::kDefaultOwner);
  std::unique_ptr<Lifecycle> lifecycle_;
  std::vector<std::string> ended_;
};

}  // namespace osb::server
