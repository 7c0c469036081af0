// Sandboxes on a disk that does not take anything: what has to end ends, and is noted later.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "server/fake_runtime.h"
#include "server/lifecycle.h"
#include "server/test_loop.h"
#include "store/sqlite_repository.h"

namespace osb::server {
namespace {

using sandbox::Principal;
using sandbox::Reason;
using sandbox::State;
using testing::HasSubstr;

io::Task<> no_answer(http::Request&, http::ResponseWriter&) { co_return; }

// As long as it lives, this process can write to no file.
class BrokenDisk {
 public:
  BrokenDisk() {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    struct rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~BrokenDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  struct rlimit before_{};
};

class LifecycleDiskTest : public testing::Test {
 protected:
  LifecycleDiskTest() : runtime_(loop_.executor(), no_answer) {
    std::string pattern = testing::TempDir() + "lifecycle_disk.XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    boot();
  }
  ~LifecycleDiskTest() override {
    loop_.await(lifecycle_->close());
    loop_.await(runtime_.close());
    lifecycle_.reset();
    repository_.reset();
    std::filesystem::remove_all(directory_);
  }

  // A new server process.
  void boot() {
    if (lifecycle_) loop_.await(lifecycle_->close());
    lifecycle_.reset();
    repository_.reset();
    auto opened = store::Store::open(directory_ + "/state.db");
    ASSERT_TRUE(opened) << opened.error().message;
    repository_.emplace(std::move(*opened));
    store_ = &repository_->store();
    lifecycle_ = std::make_unique<Lifecycle>(loop_.executor(), *repository_, runtimes_, clock_);
    loop_.await(lifecycle_->recover());
    loop_.settle();
  }
  sandbox::CreateRequest plan() {
    sandbox::CreateRequest plan;
    plan.image = "host";
    plan.entrypoint = {"sleep", "9"};
    plan.timeout = std::chrono::seconds(60);
    return plan;
  }
  std::string create() {
    auto row = loop_.await(lifecycle_->create(me_, plan()));
    EXPECT_TRUE(row) << row.error().message;
    return row->id;
  }
  std::string state(const std::string& id) {
    auto row = loop_.await(lifecycle_->get(me_, id));
    if (!row) return row.error().code;
    return std::string(to_string((*row)->status.state)) + "/" + std::string(to_string((*row)->status.reason));
  }

  TestLoop loop_;
  ManualClock clock_{*parse_time("2026-01-02T03:04:05Z")};
  FakeRuntime runtime_;
  runtime::Runtimes runtimes_{runtime_};
  std::string directory_;
  std::optional<store::SqliteRepository> repository_;
  store::Store* store_ = nullptr;
  const Principal me_ = Principal::owner_named(sandbox::kDefaultOwner);
  std::unique_ptr<Lifecycle> lifecycle_;
};

TEST_F(LifecycleDiskTest, DeletesAndExpiriesEndSandboxesAndAreNotedLater) {
  std::string deleted = create(), expired = create(), ended = create(), living = create();
  ASSERT_TRUE(loop_.await(lifecycle_->renew(me_, living, clock_.now() + std::chrono::hours(1))));
  ASSERT_TRUE(loop_.await(lifecycle_->renew(me_, ended, clock_.now() + std::chrono::hours(1))));
  {
    BrokenDisk broken;
    EXPECT_TRUE(loop_.await(lifecycle_->remove(me_, deleted)));
    EXPECT_EQ(state(deleted), "SANDBOX::NOT_FOUND");
    clock_.advance(std::chrono::seconds(61));
    ASSERT_TRUE(loop_.await(lifecycle_->expire_due()));
    loop_.settle();
    EXPECT_EQ(state(expired), "SANDBOX::NOT_FOUND");
    EXPECT_EQ(runtime_.sandboxes.size(), 2u) << "both have ended";
    runtime_.end_of(ended, {runtime::End::Kind::exited, 3, ""});
    loop_.settle();
    EXPECT_EQ(state(ended), "Failed/ENTRYPOINT_FAILED");
    auto refused = loop_.await(lifecycle_->create(me_, plan()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "SANDBOX::START_FAILED");
  }
  store_->tend();
  boot();
  EXPECT_EQ(state(deleted), "SANDBOX::NOT_FOUND");
  EXPECT_EQ(state(expired), "SANDBOX::NOT_FOUND");
  EXPECT_EQ(state(ended), "Failed/ENTRYPOINT_FAILED");
  EXPECT_EQ(state(living), "Running/RUNNING");
}

TEST_F(LifecycleDiskTest, RecoveryOnADiskThatTakesNothing) {
  std::string living = create(), ended = create(), half = create(), stopping = create();
  sandbox::Status pending{State::pending, Reason::starting, "", clock_.now()};
  ASSERT_TRUE(store_->sandboxes().set_status(half, pending));
  ASSERT_TRUE(store_->sandboxes().set_status(stopping, {State::stopping, Reason::deleted, "", clock_.now()}));
  {
    BrokenDisk broken;
    runtime_.sandboxes.erase(ended);
    boot();
    EXPECT_EQ(state(living), "Running/RUNNING");
    EXPECT_EQ(state(ended), "Failed/LOST");
    EXPECT_EQ(state(half), "SANDBOX::NOT_FOUND");
    ASSERT_TRUE(loop_.await(lifecycle_->expire_due()));
    loop_.settle();
    EXPECT_EQ(state(stopping), "SANDBOX::NOT_FOUND");
    EXPECT_EQ(runtime_.sandboxes.size(), 1u);
  }
}

}  // namespace
}  // namespace osb::server
