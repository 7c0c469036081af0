// Following the events of all sandboxes: nothing is missed, nothing is told twice, and who was away for too
// long is told so.

#include "store/events.h"

#include <gtest/gtest.h>

#include "store/sqlite_repository.h"

namespace osb::store {
namespace {

class EventsBehindTest : public testing::Test {
 protected:
  EventsBehindTest() : store_(std::move(*Store::open_in_memory())), events_(store_->events()) {
    for (const char* owner : {"me", "you"}) {
      Sandbox row;
      row.id = owner;
      row.owner = owner;
      EXPECT_TRUE(store_->sandboxes().insert(row));
    }
  }
  static WallTime at(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }
  void add(const std::string& id, const char* kind, int64_t when = 1) {
    ASSERT_TRUE(events_.add(id, {at(when), kind, "x"}));
  }
  EventsBehind behind(int64_t number, int64_t limit = 100, int64_t now = 2) {
    auto found = events_.behind(mine_, number, limit, at(now));
    EXPECT_TRUE(found) << found.error().message;
    return *found;
  }

  const Scope mine_ = Scope::of(sandbox::Principal::owner_named("me"));
  std::unique_ptr<Store> store_;
  Events& events_;
};

TEST_F(EventsBehindTest, OnlyTheOwnersAndEachOnce) {
  EXPECT_EQ(*events_.newest(), 0);
  add("me", "Created");
  add("you", "Created");
  add("me", "Running");
  add("you", "Running");
  EventsBehind first = behind(0, 1);
  ASSERT_EQ(first.events.size(), 1u);
  EXPECT_EQ(first.events[0].event.kind, "Created");
  EXPECT_EQ(first.events[0].sandbox_id, "me");
  EXPECT_FALSE(first.gap);
  EventsBehind rest = behind(first.upto);
  ASSERT_EQ(rest.events.size(), 1u);
  EXPECT_EQ(rest.events[0].event.kind, "Running");
  EXPECT_EQ(rest.upto, *events_.newest()) << "what others did is not looked at again";
  EXPECT_TRUE(behind(rest.upto).events.empty());
  EXPECT_EQ(events_.behind(Scope::everybody(), 0, 100, at(2))->events.size(), 4u);
  EXPECT_TRUE(events_.behind(Scope::of(sandbox::Principal::nobody()), 0, 100, at(2))->events.empty());
}

TEST_F(EventsBehindTest, ANumberIsNeverUsedTwice) {
  add("gone", "Created");
  add("gone", "Deleted");
  int64_t last = *events_.newest();
  ASSERT_TRUE(events_.prune(at(100000)));
  add("me", "Created", 100000);
  EXPECT_GT(*events_.newest(), last);
}

TEST_F(EventsBehindTest, WhoWasAwayForTooLongIsTold) {
  for (int i = 0; i < 3; ++i) add("gone", "Created", 1);
  add("me", "Created", 90000);
  EXPECT_TRUE(behind(0, 100, 90001).gap) << "what is older than a day may be forgotten";
  EXPECT_FALSE(behind(3, 100, 90001).gap);
  EventsBehind other = behind(1000);
  EXPECT_TRUE(other.gap) << "a number of another database";
  EXPECT_EQ(other.events.size(), 1u);
}

TEST(SqliteRepository, TellsOfChangesWhenTheyAreStored) {
  io::asio::io_context loop;
  SqliteRepository repository(std::move(*Store::open_in_memory()));
  std::vector<std::string> heard;
  std::vector<size_t> stored;
  repository.on_change([&](const std::string& id) {
    heard.push_back(id);
    stored.push_back(repository.store().events().of(Scope::everybody(), id, 9)->size());
  });
  auto run = [&](auto task) {
    io::TaskGroup group(loop.get_executor());
    bool done = false;
    auto body = [](auto work, bool& flag) -> Task<> {
      EXPECT_TRUE(co_await std::move(work));
      flag = true;
    };
    group.spawn(body(std::move(task), done));
    loop.restart();
    loop.run();
    EXPECT_TRUE(done);
  };
  Sandbox row;
  row.id = "a";
  row.owner = "me";
  run(repository.insert(row, {}));
  run(repository.set_running("a", "i", {}, {{WallTime{}, "Created", ""}, {WallTime{}, "Running", ""}}));
  run(repository.note("a", {.removed = true, .event = Event{WallTime{}, "Deleted", ""}}));
  EXPECT_EQ(heard, (std::vector<std::string>{"a", "a", "a"}));
  EXPECT_EQ(stored, (std::vector<size_t>{0, 2, 3}));
}

}  // namespace
}  // namespace osb::store
