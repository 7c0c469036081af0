#include "store/snapshots.h"

#include <gmock/gmock.h>

#include "store/store.h"

namespace osb::store {
namespace {

using sandbox::Principal;
using sandbox::Scope;
using sandbox::SnapshotState;

WallTime at(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

Snapshot row(const std::string& id, const std::string& owner, int64_t created) {
  Snapshot row{.id = id, .owner = owner, .sandbox_id = "s", .name = "n" + id};
  row.status = {SnapshotState::creating, "r", "m", at(created)};
  row.base = {.image = "host", .image_id = "i", .layers = {{"root", "d1"}, {"usr", "d2"}}};
  row.runtime = "native";
  row.created = at(created);
  return row;
}

class SnapshotRows : public testing::Test {
 protected:
  std::unique_ptr<Store> store_ = Store::open_in_memory().value();
  Snapshots& table_ = store_->snapshots();
  Scope mine_ = Scope::of(Principal::owner_named("a"));
};

TEST_F(SnapshotRows, AreFoundByTheirOwnerAlone) {
  ASSERT_TRUE(table_.insert(row("1", "a", 1)));
  EXPECT_FALSE(table_.insert(row("2", "", 1)));
  auto found = table_.find(mine_, "1").value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->base.layers, row("1", "a", 1).base.layers);
  EXPECT_EQ(found->name, "n1");
  EXPECT_EQ(found->status.changed, at(1));
  EXPECT_FALSE(table_.find(Scope::of(Principal::owner_named("b")), "1").value());
  EXPECT_FALSE(table_.find(Scope::of(Principal::nobody()), "1").value());
  EXPECT_FALSE(table_.find(Scope::of(Principal::holder_of_endpoint("s")), "1").value());
  EXPECT_TRUE(table_.find(Scope::everybody(), "1").value());
}

TEST_F(SnapshotRows, ThoseThatPassAreNobodys) {
  Snapshot passing = row("1", "a", 1);
  passing.status = {SnapshotState::deleting, sandbox::snapshot_reason::kPassing, "For a fork.", at(1)};
  ASSERT_TRUE(table_.insert(passing));
  ASSERT_TRUE(table_.insert(row("2", "a", 2)));
  EXPECT_FALSE(table_.find(mine_, "1").value());
  EXPECT_EQ(table_.list(mine_, {}, -1, 0).value().size(), 1u);
  EXPECT_EQ(table_.count(mine_, {}).value(), 1);
  EXPECT_EQ(table_.count(mine_, {.states = std::vector{SnapshotState::deleting}}).value(), 0);
  EXPECT_EQ(table_.count(mine_, {.sandbox_id = "s"}).value(), 1);
  EXPECT_TRUE(table_.find(Scope::everybody(), "1").value()) << "whoever starts finds it and takes it away";
  EXPECT_EQ(table_.list(Scope::everybody(), {}, -1, 0).value().size(), 2u);
}

TEST_F(SnapshotRows, Change) {
  ASSERT_TRUE(table_.insert(row("1", "a", 1)));
  Snapshot kept = row("1", "a", 1);
  kept.status = {SnapshotState::ready, "x", "y", at(9)};
  kept.base.layers = {{"root", "d3"}};
  kept.bytes = 5;
  EXPECT_TRUE(table_.set_kept(kept).value());
  auto found = table_.find(mine_, "1").value();
  EXPECT_EQ(found->status.state, SnapshotState::ready);
  EXPECT_EQ(found->base.layers.at(0).digest, "d3");
  EXPECT_EQ(found->bytes, 5);
  EXPECT_TRUE(table_.set_status("1", {SnapshotState::deleting, "", "", at(10)}).value());
  EXPECT_FALSE(table_.set_status("2", {}).value());
  EXPECT_TRUE(table_.remove("1").value());
  EXPECT_FALSE(table_.remove("1").value());
}

TEST_F(SnapshotRows, AreListedNewestFirst) {
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(table_.insert(row(std::to_string(i), i == 4 ? "b" : "a", i / 2)));
  auto ids = [&](const Scope& scope, sandbox::SnapshotFilter filter, int64_t limit = -1, int64_t offset = 0) {
    std::string text;
    for (const Snapshot& one : table_.list(scope, filter, limit, offset).value()) text += one.id;
    return text;
  };
  EXPECT_EQ(ids(mine_, {}), "321") << "of one time the last id first";
  EXPECT_EQ(ids(Scope::everybody(), {}), "4321");
  EXPECT_EQ(ids(mine_, {.name = "n2"}), "2");
  EXPECT_EQ(ids(mine_, {.name = ""}), "");
  EXPECT_EQ(ids(mine_, {.sandbox_id = "s"}, 1, 1), "2");
  EXPECT_EQ(ids(mine_, {.states = std::vector{SnapshotState::ready}}), "");
  EXPECT_EQ(ids(mine_, {.states = std::vector<SnapshotState>()}), "");
  EXPECT_EQ(table_.count(mine_, {}).value(), 3);
}

}  // namespace
}  // namespace osb::store
