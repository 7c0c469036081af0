#include "store/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"

namespace osb::store {
namespace {

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "store_test.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/deep/er/state.db";
    open();
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void open() {
    auto store = Store::open(path_);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
  }
  static WallTime at(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }
  static Sandbox row(std::string id, int64_t created) {
    Sandbox row;
    row.id = std::move(id);
    row.owner = kOwner;
    row.image = "host";
    row.status = {State::pending, Reason::starting, "starting", at(created)};
    row.created = at(created);
    return row;
  }
  std::vector<std::string> ids(const Filter& filter, int64_t limit = 100, int64_t offset = 0) {
    std::vector<std::string> out;
    auto listed = store_->sandboxes().list(mine_, filter, limit, offset,
                                           [&](const SandboxPtr& r) { out.push_back(r->id); });
    EXPECT_TRUE(listed) << listed.error().message;
    // What is known in memory says the same.
    auto page = store_->sandboxes().page(mine_, filter, limit, offset);
    std::vector<std::string> known;
    if (page) {
      for (const SandboxPtr& r : page->rows) known.push_back(r->id);
    }
    EXPECT_EQ(known, out);
    return out;
  }

  static constexpr const char* kOwner = "me";
  const Scope mine_ = Scope::of(sandbox::Principal::owner_named(kOwner));
  std::string directory_, path_;
  std::unique_ptr<Store> store_;
};

using Ids = std::vector<std::string>;

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

TEST_F(StoreTest, MakesTheFilePrivate) {
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((directory_ + "/deep/er").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(StoreTest, KeepsEveryColumnAcrossAReopen) {
  Sandbox in = row("a", 100);
  in.entrypoint = {"tail", "-f", "/dev/null"};
  in.metadata = {{"team", "t1"}};
  in.limits = {{"cpu", "1"}};
  in.env_names = {"A"};
  in.extensions = {{"opensandbox.extensions.x", "y"}};
  in.platform = "linux/amd64";
  in.expires = WallTime(std::chrono::microseconds(123'456'789));
  ASSERT_TRUE(store_->sandboxes().insert(in));
  ASSERT_TRUE(*store_->sandboxes().set_identity("a", "boot:1",
                                                {State::running, Reason::running, "it runs", at(101)}));
  store_.reset();
  open();
  auto out = store_->sandboxes().find(mine_, "a");
  ASSERT_TRUE(out && *out);
  const Sandbox& got = **out;
  EXPECT_EQ(got.image, "host");
  EXPECT_EQ(got.entrypoint, in.entrypoint);
  EXPECT_EQ(got.metadata, in.metadata);
  EXPECT_EQ(got.limits, in.limits);
  EXPECT_EQ(got.env_names, in.env_names);
  EXPECT_EQ(got.extensions, in.extensions);
  EXPECT_EQ(got.platform, "linux/amd64");
  EXPECT_EQ(got.owner, kOwner);
  EXPECT_EQ(got.identity, "boot:1");
  EXPECT_EQ(got.status.state, State::running);
  EXPECT_EQ(got.status.reason, Reason::running);
  EXPECT_EQ(got.status.message, "it runs");
  EXPECT_EQ(got.status.changed, at(101));
  EXPECT_EQ(got.created, at(100));
  EXPECT_EQ(got.expires, in.expires);
}

TEST_F(StoreTest, SaysWhenThereIsNoSuchRow) {
  EXPECT_FALSE(*store_->sandboxes().find(mine_, "nope"));
  EXPECT_FALSE(*store_->sandboxes().set_status("nope", {State::failed, Reason::lost, "", at(1)}));
  EXPECT_FALSE(*store_->sandboxes().set_identity("nope", "i", {State::running, Reason::running, "", at(1)}));
  EXPECT_FALSE(*store_->sandboxes().set_expiry("nope", at(1)));
  EXPECT_FALSE(*store_->sandboxes().set_metadata("nope", {}));
  EXPECT_FALSE(*store_->sandboxes().remove("nope"));
}

TEST_F(StoreTest, AKeptRowFollowsEveryChange) {
  auto& table = store_->sandboxes();
  auto now = [&] { return *table.find(mine_, "a"); };
  ASSERT_TRUE(table.insert(row("a", 1)));
  SandboxPtr first = now();
  EXPECT_EQ(now(), first) << "read once";
  uint64_t generation = table.generation();
  ASSERT_TRUE(*table.set_metadata("a", {{"k", "v"}}));
  EXPECT_NE(table.generation(), generation);
  EXPECT_EQ(now()->metadata, (sandbox::Metadata{{"k", "v"}}));
  EXPECT_TRUE(first->metadata.empty()) << "what a reader holds does not change under it";
  ASSERT_TRUE(*table.set_expiry("a", at(9)));
  EXPECT_EQ(now()->expires, at(9));
  ASSERT_TRUE(*table.set_status("a", {State::failed, Reason::lost, "m", at(5)}));
  EXPECT_EQ(now()->status.reason, Reason::lost);
  ASSERT_TRUE(*table.set_identity("a", "i", {State::running, Reason::running, "", at(6)}));
  EXPECT_EQ(now()->identity, "i");
  ASSERT_TRUE(*table.remove("a"));
  EXPECT_EQ(now(), nullptr);
  {
    auto transaction = store_->begin();
    ASSERT_TRUE(table.insert(row("b", 1)));
    EXPECT_NE(*table.find(mine_, "b"), nullptr);
  }
  EXPECT_EQ(*table.find(mine_, "b"), nullptr) << "nothing of a rolled back transaction is kept";
}

TEST_F(StoreTest, RefusesASecondRowOfOneId) {
  ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
  EXPECT_FALSE(store_->sandboxes().insert(row("a", 2)));
  EXPECT_EQ(*store_->sandboxes().count(mine_, {}), 1);
}

TEST_F(StoreTest, ListsNewestFirstInPages) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->sandboxes().insert(row(std::string(1, 'a' + i), 10 + i)));
  ASSERT_TRUE(store_->sandboxes().insert(row("z", 12)));  // as old as c: ties by id
  EXPECT_EQ(ids({}), (Ids{"e", "d", "z", "c", "b", "a"}));
  EXPECT_EQ(ids({}, 2, 2), (Ids{"z", "c"}));
  EXPECT_EQ(ids({}, 2, 6), Ids{});
  EXPECT_EQ(*store_->sandboxes().count(mine_, {}), 6);
}

TEST_F(StoreTest, FiltersByStateAndMetadata) {
  auto add = [&](std::string id, State state, sandbox::Metadata metadata) {
    Sandbox r = row(id, id[0]);
    r.status.state = state;
    r.metadata = std::move(metadata);
    ASSERT_TRUE(store_->sandboxes().insert(r));
  };
  add("a", State::running, {{"team", "x"}, {"tier", "1"}});
  add("b", State::failed, {{"team", "x"}});
  add("c", State::running, {{"team", "y"}, {"a.b/c", ""}});
  EXPECT_EQ(ids({.states = std::vector{State::running}}), (Ids{"c", "a"}));
  EXPECT_EQ(ids({.states = std::vector{State::running, State::failed}}), (Ids{"c", "b", "a"}));
  EXPECT_EQ(ids({.states = std::vector<State>{}}), Ids{});
  EXPECT_EQ(ids({.metadata = {{"team", "x"}}}), (Ids{"b", "a"}));
  EXPECT_EQ(ids({.metadata = {{"team", "x"}, {"tier", "1"}}}), Ids{"a"});
  EXPECT_EQ(ids({.metadata = {{"a.b/c", ""}}}), Ids{"c"});
  EXPECT_EQ(ids({.metadata = {{"$.team", "x"}}}), Ids{});
  EXPECT_EQ(ids({.metadata = {{"team\" OR 1=1 --", "x"}}}), Ids{});
  EXPECT_EQ(
      *store_->sandboxes().count(mine_, {.states = std::vector{State::failed}, .metadata = {{"team", "x"}}}),
      1);
}

TEST_F(StoreTest, FindsWhatIsDue) {
  EXPECT_FALSE(*store_->sandboxes().next_expiry());
  for (auto [id, expiry] : {std::pair("a", 30), {"b", 10}, {"c", 20}}) {
    Sandbox r = row(id, 1);
    r.expires = at(expiry);
    ASSERT_TRUE(store_->sandboxes().insert(r));
  }
  ASSERT_TRUE(store_->sandboxes().insert(row("never", 1)));
  EXPECT_EQ(*store_->sandboxes().next_expiry(), at(10));
  EXPECT_EQ(*store_->sandboxes().due(at(9), 10), Ids{});
  EXPECT_EQ(*store_->sandboxes().due(at(20), 10), (Ids{"b", "c"}));
  EXPECT_EQ(*store_->sandboxes().due(at(99), 1), Ids{"b"});
  ASSERT_TRUE(*store_->sandboxes().set_expiry("b", at(50)));
  EXPECT_EQ(*store_->sandboxes().next_expiry(), at(20));
}

TEST_F(StoreTest, AnUncommittedTransactionLeavesNothing) {
  {
    auto transaction = store_->begin();
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
    ASSERT_TRUE(store_->events().add("a", {at(1), "Created", ""}));
  }
  EXPECT_EQ(*store_->sandboxes().count(mine_, {}), 0);
  EXPECT_TRUE(store_->events().of(Scope::everybody(), "a", 10)->empty());
  {
    auto transaction = store_->begin();
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(*store_->sandboxes().count(mine_, {}), 1);
}

// What a kill -9 leaves: the file and its log as they are, never closed.
TEST_F(StoreTest, CommittedRowsSurviveACopyOfTheOpenFiles) {
  ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
  std::string copy = directory_ + "/copy.db";
  std::filesystem::copy_file(path_, copy);
  std::filesystem::copy_file(path_ + "-wal", copy + "-wal");
  auto other = Store::open(copy);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(*(*other)->sandboxes().find(mine_, "a"));
}

TEST_F(StoreTest, TheLogIsMovedIntoTheFile) {
  auto log_size = [&] { return std::filesystem::file_size(path_ + "-wal"); };
  auto file_size = [&] { return std::filesystem::file_size(path_); };
  std::string text(2000, 'x');
  int commits = 0;
  while (file_size() < (1 << 20) && commits < 20000) {
    ASSERT_TRUE(store_->events().add("a", {at(++commits), "Filler", text}));
  }
  EXPECT_GE(file_size(), 1u << 20) << "after " << commits << " commits and " << log_size() << " bytes of log";
  store_.reset();
  open();
  EXPECT_EQ(store_->events().of(Scope::everybody(), "a", 100000)->size(), static_cast<size_t>(commits));
}

TEST_F(StoreTest, EventsOutliveTheirSandboxForADay) {
  auto& events = store_->events();
  ASSERT_TRUE(store_->sandboxes().insert(row("alive", 1)));
  ASSERT_TRUE(events.add("alive", {at(1), "Created", "x"}));
  ASSERT_TRUE(events.add("gone", {at(1), "Created", "x"}));
  ASSERT_TRUE(events.add("gone", {at(2), "Deleted", "by a client"}));
  ASSERT_TRUE(events.add("gone", {at(90000), "Late", ""}));
  auto newest = events.of(Scope::everybody(), "gone", 2);
  ASSERT_EQ(newest->size(), 2u);
  EXPECT_EQ((*newest)[0].kind, "Deleted");
  EXPECT_EQ((*newest)[0].detail, "by a client");
  EXPECT_EQ((*newest)[1].kind, "Late");
  auto pruned = events.prune(at(86400 + 3));
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_EQ(events.of(Scope::everybody(), "gone", 9)->size(), 1u);
  EXPECT_EQ(events.of(Scope::everybody(), "alive", 9)->size(), 1u) << "events of a living sandbox are kept";
}

TEST_F(StoreTest, EventsAreBounded) {
  auto& events = store_->events();
  ASSERT_TRUE(store_->sandboxes().insert(row("alive", 1)));
  ASSERT_TRUE(events.add("alive", {at(1), "Created", ""}));
  for (int64_t i = 0; i < Events::kPruneStep + 10; ++i)
    ASSERT_TRUE(events.add("gone", {at(1), "Created", ""}));
  EXPECT_TRUE(*events.prune(at(2), 5)) << "there is more to forget";
  EXPECT_FALSE(*events.prune(at(2), 5));
  EXPECT_EQ(events.of(Scope::everybody(), "gone", 9999)->size(), 5u);
  EXPECT_EQ(events.of(Scope::everybody(), "alive", 9)->size(), 1u);
}

TEST_F(StoreTest, WhatHappenedCountsAlthoughTheDiskDoesNotTakeIt) {
  auto& table = store_->sandboxes();
  for (const char* id : {"a", "b", "c"}) {
    Sandbox r = row(id, id[0]);
    r.expires = at(1000);
    r.status.state = State::running;
    ASSERT_TRUE(table.insert(r));
  }
  {
    BrokenDisk broken;
    EXPECT_FALSE(table.insert(row("d", 1))) << "nothing new";
    uint64_t generation = table.generation();
    EXPECT_FALSE(store_->note("a", {.removed = true, .event = Event{at(2), "Deleted", "x"}}));
    EXPECT_FALSE(store_->note("b", {.status = Status{State::failed, Reason::lost, "m", at(3)},
                                    .event = Event{at(3), "Ended", "y"},
                                    .output = Output{"last words", true}}));
    EXPECT_FALSE(store_->note("c", {.expires = at(5)}));
    EXPECT_NE(table.generation(), generation);
    EXPECT_EQ(store_->waiting(), 3u);
    EXPECT_EQ(*table.find(mine_, "a"), nullptr);
    EXPECT_EQ((*table.find(mine_, "b"))->status.reason, Reason::lost);
    EXPECT_EQ(ids({}), (Ids{"c", "b"}));
    EXPECT_EQ(ids({}, 1, 1), (Ids{"b"}));
    EXPECT_EQ(ids({.states = std::vector{State::failed}}), (Ids{"b"}));
    EXPECT_EQ(*table.count(mine_, {}), 2);
    EXPECT_EQ(*table.due(at(5), 10), Ids{"c"});
    EXPECT_EQ(*table.due(at(1000), 1), Ids{"c"});
    EXPECT_EQ(*table.due(at(1000), 10), (Ids{"c", "b"})) << "what is removed is not due";
    EXPECT_FALSE(table.set_metadata("b", {})) << "earlier changes come first";
    EXPECT_FALSE(store_->check_writing());
    store_->tend();
    EXPECT_EQ(store_->waiting(), 3u);
  }
  store_->tend();
  EXPECT_EQ(store_->waiting(), 0u);
  store_.reset();
  open();
  EXPECT_EQ(ids({}), (Ids{"c", "b"}));
  EXPECT_EQ((*store_->sandboxes().find(mine_, "b"))->status.reason, Reason::lost);
  EXPECT_EQ((*store_->sandboxes().find(mine_, "c"))->expires, at(5));
  EXPECT_EQ((*store_->outputs().find(mine_, "b"))->text, "last words");
  EXPECT_EQ(store_->events().of(Scope::everybody(), "a", 9)->at(0).kind, "Deleted");
}

TEST_F(StoreTest, AChangeTakesEarlierOnesThatWaitAlong) {
  ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
  {
    BrokenDisk broken;
    EXPECT_FALSE(store_->note("a", {.status = Status{State::paused, Reason::paused, "", at(3)}}));
  }
  ASSERT_TRUE(*store_->sandboxes().set_expiry("a", at(9)));
  EXPECT_EQ(store_->waiting(), 0u);
  EXPECT_EQ((*store_->sandboxes().find(mine_, "a"))->status.reason, Reason::paused);
}

TEST_F(StoreTest, OpensWithoutRoomForAnythingNew) {
  ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
  store_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_ + "-wal")) << "an orderly end keeps it, and the room that it has";
  {
    BrokenDisk broken;
    open();
    EXPECT_EQ(ids({}), Ids{"a"});
    EXPECT_FALSE(store_->note("a", {.removed = true}));
  }
  store_->tend();
  EXPECT_EQ(store_->waiting(), 0u) << "it can be written without being opened again";
  store_.reset();
  open();
  EXPECT_EQ(ids({}), Ids{});
}

TEST_F(StoreTest, TheLogHasItsRoomBeforeItNeedsIt) {
  struct stat info{};
  ASSERT_EQ(::stat((path_ + "-wal").c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, kLogBytes);
  store_.reset();
  ASSERT_EQ(::stat((path_ + "-wal").c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, kLogBytes) << "also while nobody has it open";
}

TEST_F(StoreTest, ADamagedRowSpoilsNothing) {
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(store_->sandboxes().insert(row(id, id[0])));
  store_.reset();
  {
    auto db = Database::open(path_);
    ASSERT_TRUE(db->execute("UPDATE sandboxes SET metadata = '{\"x\":', limits = '[]' WHERE id = 'a'"));
    ASSERT_TRUE(db->execute("UPDATE sandboxes SET state = 'Dancing' WHERE id = 'b'"));
  }
  open();
  auto& table = store_->sandboxes();
  EXPECT_EQ(ids({}), (Ids{"c", "b", "a"}));
  EXPECT_EQ(ids({.metadata = {{"x", "y"}}}), Ids{});
  EXPECT_TRUE((*table.find(mine_, "a"))->metadata.empty());
  EXPECT_TRUE((*table.find(mine_, "a"))->limits.empty());
  EXPECT_EQ((*table.find(mine_, "b"))->status.state, State::failed);
  EXPECT_EQ((*table.find(mine_, "b"))->status.reason, Reason::damaged);
  EXPECT_EQ(table.damaged().size(), 2u);
  ASSERT_TRUE(*table.set_status("b", {State::running, Reason::running, "", at(1)}));
  EXPECT_EQ((*table.find(mine_, "b"))->status.reason, Reason::running);
  ASSERT_TRUE(store_->note("a", {.removed = true}));
  EXPECT_TRUE(table.damaged().empty());
}

TEST_F(StoreTest, AnUnknownReasonIsDamageToo) {
  ASSERT_TRUE(store_->sandboxes().insert(row("a", 1)));
  store_.reset();
  ASSERT_TRUE(Database::open(path_)->execute("UPDATE sandboxes SET reason = 'WHIM', state = 'Running'"));
  open();
  SandboxPtr read = *store_->sandboxes().find(mine_, "a");
  EXPECT_EQ(read->status.state, State::running) << "the state is known";
  EXPECT_EQ(read->status.reason, Reason::none);
  EXPECT_EQ(store_->sandboxes().damaged().size(), 1u);
}

TEST_F(StoreTest, NothingIsNobodys) {
  Sandbox orphan = row("a", 1);
  orphan.owner.clear();
  EXPECT_FALSE(store_->sandboxes().insert(orphan));
}

TEST_F(StoreTest, NobodySeesWhatIsAnothers) {
  Scope theirs = Scope::of(sandbox::Principal::owner_named("them"));
  Scope nobody = Scope::of(sandbox::Principal::nobody());
  auto& table = store_->sandboxes();
  Sandbox other = row("theirs", 2);
  other.owner = "them";
  other.metadata = {{"k", "v"}};
  ASSERT_TRUE(table.insert(row("mine", 1)));
  ASSERT_TRUE(table.insert(other));
  ASSERT_TRUE(store_->events().add("theirs", {at(2), "Created", ""}));
  ASSERT_TRUE(store_->outputs().put("theirs", {"secret", false}));
  auto look = [&] {
    EXPECT_EQ(*table.find(mine_, "theirs"), nullptr);
    EXPECT_EQ(*table.find(nobody, "theirs"), nullptr);
    EXPECT_EQ(ids({}), Ids{"mine"});
    EXPECT_EQ(ids({.metadata = {{"k", "v"}}}), Ids{});
    EXPECT_EQ(ids({.states = std::vector{State::pending}}), Ids{"mine"});
    EXPECT_EQ(*table.count(mine_, {}), 1);
    EXPECT_EQ(*table.count(mine_, {.metadata = {{"k", "v"}}}), 0);
    EXPECT_EQ(*table.count(nobody, {}), 0);
    EXPECT_EQ(*table.count(theirs, {.metadata = {{"k", "v"}}}), 1);
    EXPECT_TRUE(store_->events().of(mine_, "theirs", 9)->empty());
    EXPECT_EQ(store_->events().of(theirs, "theirs", 9)->size(), 1u);
    EXPECT_FALSE(*store_->outputs().find(mine_, "theirs"));
    EXPECT_TRUE(*store_->outputs().find(theirs, "theirs"));
  };
  look();
  {
    BrokenDisk broken;  // the other way of listing
    EXPECT_FALSE(store_->note("mine", {.expires = at(9)}));
    EXPECT_FALSE(store_->note("theirs", {.expires = at(9)}));
    look();
  }
  store_->tend();
  ASSERT_TRUE(store_->note("theirs", {.removed = true, .event = Event{at(3), "Deleted", ""}}));
  EXPECT_TRUE(store_->events().of(mine_, "theirs", 9)->empty()) << "also when it is gone";
  EXPECT_EQ(store_->events().of(theirs, "theirs", 9)->size(), 2u);
}

TEST_F(StoreTest, OneServiceAtATime) {
  auto second = Store::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::already_exists) << second.error().message;
  EXPECT_NE(second.error().message.find(path_), std::string::npos);
}

TEST_F(StoreTest, BelongsToOneService) {
  auto opens = [&](const DatabaseOwner& owner) {
    store_.reset();
    auto store = Store::open(path_, owner);
    if (!store) EXPECT_EQ(store.error().code, Code::already_exists) << store.error().message;
    return store.has_value();
  };
  EXPECT_TRUE(opens({.identity = "", .state_dir = "/one"}));
  EXPECT_FALSE(opens({.identity = "", .state_dir = "/two"}));
  EXPECT_TRUE(opens({.identity = "1", .state_dir = "/one"})) << "it got an identity";
  EXPECT_FALSE(opens({.identity = "2", .state_dir = "/one"})) << "another directory under the same name";
  EXPECT_TRUE(opens({.identity = "1", .state_dir = "/moved"}));
  EXPECT_FALSE(opens({.identity = "", .state_dir = "/one"}));
}

TEST_F(StoreTest, CanBeWrittenAndSaysSo) {
  auto can = store_->check_writing();
  EXPECT_TRUE(can) << can.error().message;
}

TEST_F(StoreTest, ALockThatStaysIsCuredByAnotherProcess) {
  auto other = Database::open(path_, Locking::shared);
  ASSERT_TRUE(other) << other.error().message;
  auto transaction = Transaction::begin(*other);
  ASSERT_TRUE(transaction);
  store_->tend();
  EXPECT_FALSE(store_->wants_reopening()) << "a moment is nothing";
  store_->tend();
  EXPECT_TRUE(store_->wants_reopening());
  ASSERT_TRUE(transaction->commit());
  store_->tend();
  EXPECT_FALSE(store_->wants_reopening());
}

}  // namespace
}  // namespace osb::store
