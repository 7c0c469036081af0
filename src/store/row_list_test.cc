#include "store/row_list.h"

#include <gtest/gtest.h>

#include <random>

#include "store/store.h"

namespace osb::store {
namespace {

using sandbox::Principal;

WallTime at(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

Sandbox row(std::string id, int64_t created, std::string owner = "me") {
  Sandbox row;
  row.id = std::move(id);
  row.owner = std::move(owner);
  row.image = "host";
  row.created = at(created);
  row.status = {State::running, Reason::none, "", at(created)};
  return row;
}

// A list as SQLite makes it.
RowList::Found from_disk(Sandboxes& table, const Scope& scope, const Filter& filter, int64_t limit,
                         int64_t offset) {
  RowList::Found found;
  EXPECT_TRUE(
      table.list(scope, filter, limit, offset, [&](const SandboxPtr& one) { found.rows.push_back(one); }));
  found.total = table.count(scope, filter).value_or(-1);
  return found;
}

void expect_same(Sandboxes& table, const Scope& scope, const Filter& filter, int64_t limit, int64_t offset) {
  auto known = table.page(scope, filter, limit, offset);
  ASSERT_TRUE(known) << known.error().message;
  RowList::Found stored = from_disk(table, scope, filter, limit, offset);
  ASSERT_EQ(known->total, stored.total);
  ASSERT_EQ(known->rows.size(), stored.rows.size());
  for (size_t i = 0; i < stored.rows.size(); ++i) {
    const Sandbox &one = *known->rows[i], &other = *stored.rows[i];
    ASSERT_EQ(one.id, other.id);
    ASSERT_EQ(one.metadata, other.metadata);
    ASSERT_EQ(one.status.state, other.status.state);
    ASSERT_EQ(one.expires, other.expires);
  }
}

// Whatever is written, and however it ends, the next page is what the disk has.
TEST(RowList, IsWhatTheTableHas) {
  auto store = Store::open_in_memory();
  ASSERT_TRUE(store);
  Sandboxes& table = (*store)->sandboxes();
  std::minstd_rand random(20261116);
  auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  auto text = [&](unsigned n) { return std::to_string(below(n)); };
  constexpr State kStates[] = {State::pending, State::running, State::paused, State::terminated};
  for (int turn = 0; turn < 4000; ++turn) {
    std::string id = "id" + text(60);
    auto change = [&] {
      switch (below(6)) {
        case 0: {
          Sandbox fresh = row(id, below(20), below(3) ? "me" : "other");
          fresh.metadata = {{"a", text(3)}, {"b", text(3)}};
          return (void)table.insert(fresh);  // may be there already
        }
        case 1:
          return (void)table.remove(id);
        case 2:
          return (void)table.set_metadata(id, {{"a", text(3)}, {"c", text(2)}});
        case 3:
          return (void)table.set_status(id, {kStates[below(4)], Reason::none, "", at(turn)});
        case 4:
          return (void)table.set_expiry(id, at(turn));
        default:
          return (void)table.replace(id, "handle", "identity", {State::running, Reason::none, "", at(turn)});
      }
    };
    if (below(4) == 0) {
      auto transaction = (*store)->begin();
      ASSERT_TRUE(transaction);
      change();
      if (below(4) == 0) std::ignore = table.page(Scope::everybody(), {}, 5, 0);
      change();
      if (below(2) == 0) std::ignore = transaction->commit();
    } else {
      change();
    }
    if (below(3) != 0) continue;
    Filter filter;
    if (below(2)) filter.metadata.emplace_back("a", text(3));
    if (below(3) == 0) filter.metadata.emplace_back("b", text(3));
    if (below(3) == 0) filter.states = std::vector{kStates[below(4)], State::running};
    Scope scope =
        below(4) ? Scope::of(Principal::owner_named(below(3) ? "me" : "other")) : Scope::everybody();
    ASSERT_NO_FATAL_FAILURE(expect_same(table, scope, filter, below(3) ? 7 : -1, below(10))) << turn;
  }
}

TEST(RowList, WhoHasNoOwnerSeesNothing) {
  RowList list;
  list.load({std::make_shared<Sandbox>(row("a", 1))});
  EXPECT_EQ(list.find(Scope::of(Principal::nobody()), {}, -1, 0).total, 0);
  EXPECT_EQ(list.find(Scope::of(Principal::holder_of_endpoint("a")), {}, -1, 0).total, 0);
  EXPECT_EQ(list.find(Scope::of(Principal::owner_named("me")), {}, -1, 0).total, 1);
}

TEST(RowList, IsBounded) {
  RowList list;
  list.load({});
  for (size_t i = 0; i < RowList::kMaxTouched; ++i) list.touch("a");
  EXPECT_TRUE(list.loaded());
  EXPECT_EQ(list.take_touched(), std::vector<std::string>{"a"}) << "each is read again once";
  for (size_t i = 0; i <= RowList::kMaxTouched; ++i) list.touch("a");
  EXPECT_FALSE(list.loaded()) << "reading all of them again is no more work";

  std::vector<SandboxPtr> most;
  for (size_t i = 0; i < RowList::kMaxRows; ++i)
    most.push_back(std::make_shared<Sandbox>(row(std::to_string(i), static_cast<int64_t>(i))));
  list.load(std::move(most));
  list.put(std::make_shared<Sandbox>(row("0", 0)));
  EXPECT_TRUE(list.loaded()) << "it is there already";
  list.put(std::make_shared<Sandbox>(row("one too many", 0)));
  EXPECT_FALSE(list.loaded());
}

}  // namespace
}  // namespace osb::store
