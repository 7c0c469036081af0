// Databases that earlier versions wrote are read by this one: fixtures/ has them as SQL.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "store/migrations.h"
#include "store/store.h"

namespace osb::store {
namespace {

struct Fixture {
  const char* file;
  std::string plain, rich, paused, failed, gone;  // ids
  std::string handle;                             // of `rich`
};

const Fixture kFixtures[] = {
    {"schema_2.sql", "01a1e226-b08d-7fd9-9df5-c7fb7d27b2cb", "01a1e226-b1ac-76af-bb1e-9f5651933015",
     "01a1e226-b1c7-720f-88e0-be73ad321ab1", "01a1e226-b1da-78f4-a721-9f5ae6e0b690",
     "01a1e226-b515-7794-95b5-2476fc8f5ca5", "01a1e226-b1ac-76af-bb1e-9f5651933015"},
    {"schema_3.sql", "01a1e226-a1fe-7901-af5d-403e919be4a1", "01a1e226-a31b-7920-91a0-c914b516ee83",
     "01a1e226-a3b9-784e-ba01-95d63a57b991", "01a1e226-a40a-7df7-814c-98b2bec4b149",
     "01a1e226-a655-7930-8122-1fcd33405ed8", "bb953f8e-8a73-417a-ab76-4fae849b6686"},
    {"schema_5.sql", "01a1e3a2-17ec-7b3b-8242-7a24166c0862", "01a1e3a2-1876-7f82-b37b-d6afbefd3a9a",
     "01a1e3a2-18d1-7ab2-af30-d1bad59346a3", "01a1e3a2-1955-7e68-a0af-fa49e87e50f7",
     "01a1e3a2-1b6c-7ecc-8d3c-9b67a1b1c058", "040a62ed-6099-4307-9890-cc59c8a84e16"},
    {"schema_7.sql", "01a1e53f-af61-7cf1-a985-4c9699e56667", "01a1e53f-b063-7188-b5a5-9e800406e1a4",
     "01a1e53f-b0b4-77ab-9d2e-0c0910d1ceea", "01a1e53f-b171-7016-b940-abfe62d251bc",
     "01a1e53f-b44b-76fe-a495-57e5e7a740b9", "e14b072c-49a5-4251-85b2-c178cabce158"},
};

class UpgradeTest : public testing::TestWithParam<Fixture> {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "upgrade_test.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/state.db";
    ASSERT_TRUE(write_file(path_, "", O_CREAT | O_WRONLY));
    auto sql = read_file(std::string(OSB_STORE_FIXTURES) + "/" + GetParam().file);
    ASSERT_TRUE(sql) << sql.error().message;
    auto written = Database::open(path_)->execute(*sql);
    ASSERT_TRUE(written) << written.error().message;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Store> open() {
    auto store = Store::open(path_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }

  const Scope owner_ = Scope::of(sandbox::Principal::owner_named(sandbox::kDefaultOwner));
  std::string directory_, path_;
};

TEST_P(UpgradeTest, ThereAreNoSnapshotsYetAndSomeCanBe) {
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->snapshots().count(Scope::everybody(), {}).value(), 0);
  ASSERT_TRUE(store->snapshots().insert({.id = "s", .owner = std::string(sandbox::kDefaultOwner)}));
  EXPECT_EQ(store->snapshots().count(owner_, {}).value(), 1);
}

TEST_P(UpgradeTest, ThereAreNoPoolsYetAndSomeCanBe) {
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->pools().all()->empty());
  EXPECT_TRUE(store->pools().members()->empty());
  ASSERT_TRUE(*store->pools().insert({.id = "i", .owner = std::string(sandbox::kDefaultOwner), .name = "p"}));
  ASSERT_TRUE(store->pools().insert_member({.handle = "h", .pool = "i"}));
  EXPECT_EQ(store->pools().members()->size(), 1u);
}

TEST_P(UpgradeTest, EverySandboxIsTheDefaultOwnersAndAsItWas) {
  const Fixture& f = GetParam();
  auto store = open();
  ASSERT_NE(store, nullptr);
  std::vector<std::string> ids;
  ASSERT_TRUE(
      store->sandboxes().list(owner_, {}, 100, 0, [&](const SandboxPtr& s) { ids.push_back(s->id); }));
  EXPECT_EQ(ids, (std::vector{f.failed, f.paused, f.rich, f.plain})) << "newest first";
  EXPECT_TRUE(store->sandboxes().damaged().empty());

  SandboxPtr rich = *store->sandboxes().find(owner_, f.rich);
  EXPECT_EQ(rich->owner, sandbox::kDefaultOwner);
  EXPECT_EQ(rich->handle, f.handle);
  EXPECT_EQ(rich->runtime, "native");
  EXPECT_EQ(rich->entrypoint, (std::vector<std::string>{"sh", "-c", "echo \"x\" <&1; sleep 99"}));
  EXPECT_EQ(rich->metadata, (sandbox::Metadata{{"a.b/c", ""}, {"team", "t1"}}));
  EXPECT_EQ(rich->limits, (std::map<std::string, std::string>{{"memory", "512Mi"}, {"pids", "64"}}));
  EXPECT_EQ(rich->env_names, std::vector<std::string>{"A"});
  EXPECT_EQ(rich->extensions, (std::map<std::string, std::string>{{"opensandbox.extensions.x", "y"}}));
  EXPECT_EQ(rich->status.state, State::running);
  EXPECT_EQ(rich->status.reason, Reason::running);
  EXPECT_FALSE(rich->identity.empty());
  EXPECT_EQ(*rich->expires - rich->created, std::chrono::hours(1));
  EXPECT_EQ((*store->sandboxes().find(owner_, f.paused))->status.reason, Reason::paused);
  EXPECT_EQ((*store->sandboxes().find(owner_, f.failed))->status.reason, Reason::entrypoint_failed);
  EXPECT_EQ(*store->sandboxes().count(owner_, {.metadata = {{"team", "t1"}}}), 1);

  EXPECT_NE((*store->outputs().find(owner_, f.failed))->text.find("last words"), std::string::npos);
  auto events = *store->events().of(owner_, f.gone, 9);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events.back().kind, "Deleted");

  Scope other = Scope::of(sandbox::Principal::owner_named("other"));
  EXPECT_EQ(*store->sandboxes().find(other, f.rich), nullptr);
  EXPECT_EQ(*store->sandboxes().count(other, {}), 0);
  EXPECT_TRUE(store->events().of(other, f.gone, 9)->empty());
}

TEST_P(UpgradeTest, ItIsUsedAndOpenedAgain) {
  const Fixture& f = GetParam();
  {
    auto store = open();
    ASSERT_TRUE(*store->sandboxes().set_metadata(f.plain, {{"new", "label"}}));
    ASSERT_TRUE(store->note(f.rich, {.removed = true, .event = Event{WallTime{}, "Deleted", "x"}}));
    Sandbox fresh;
    fresh.id = "fresh";
    fresh.owner = "other";
    ASSERT_TRUE(store->sandboxes().insert(fresh));
  }
  auto store = open();
  EXPECT_EQ((*store->sandboxes().find(owner_, f.plain))->metadata, (sandbox::Metadata{{"new", "label"}}));
  EXPECT_EQ(*store->sandboxes().count(owner_, {}), 3);
  EXPECT_EQ(*store->sandboxes().count(Scope::everybody(), {}), 4);
  EXPECT_EQ(store->events().of(owner_, f.rich, 9)->back().kind, "Deleted");
  // Tables that came later are there.
  WallTime now(std::chrono::seconds(1));
  ASSERT_TRUE(store->create_keys().put({"me", "k", "f", f.plain, now}));
  EXPECT_EQ((*store->create_keys().find("me", "k", now))->sandbox_id, f.plain);
}

INSTANTIATE_TEST_SUITE_P(Store, UpgradeTest, testing::ValuesIn(kFixtures),
                         [](const auto& info) { return std::string(info.param.file).substr(0, 8); });

}  // namespace
}  // namespace osb::store
