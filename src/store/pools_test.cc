#include "store/pools.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "store/sqlite_repository.h"
#include "store/store.h"

namespace osb::store {
namespace {

Pool pool(std::string owner, std::string name) {
  return {.id = owner + name,
          .owner = std::move(owner),
          .name = std::move(name),
          .shape = "{}",
          .capacity = {.buffer_min = 1, .buffer_max = 2, .pool_min = 3, .pool_max = 4}};
}

TEST(PoolRows, AreKeptByOwnerAndName) {
  auto store = *Store::open_in_memory();
  Pools& pools = store->pools();
  EXPECT_TRUE(*pools.insert(pool("a", "p")));
  EXPECT_FALSE(*pools.insert(pool("a", "p"))) << "there is one";
  EXPECT_TRUE(*pools.insert(pool("b", "p")));
  EXPECT_EQ((*pools.find("a", "p"))->id, "ap");
  EXPECT_FALSE(*pools.find("a", "q"));
  EXPECT_TRUE(
      *pools.set_capacity("a", "p", {.buffer_min = 5, .buffer_max = 6, .pool_min = 7, .pool_max = 8}));
  EXPECT_FALSE(*pools.set_capacity("c", "p", {}));
  EXPECT_EQ((*pools.find("a", "p"))->capacity.pool_max, 8);
  EXPECT_EQ((*pools.find("b", "p"))->capacity.pool_max, 4);
  EXPECT_TRUE(*pools.remove("a", "p"));
  EXPECT_FALSE(*pools.remove("a", "p"));
  EXPECT_EQ(pools.all()->size(), 1u);
}

TEST(PoolRows, AMemberIsTheirsOrSomebodys) {
  SqliteRepository repository(*Store::open_in_memory());
  Store& store = repository.store();
  ASSERT_TRUE(store.pools().insert_member({.handle = "h", .id = "s", .pool = "ap", .runtime = "native"}));
  EXPECT_FALSE(store.pools().insert_member({.handle = "h", .pool = "ap"})) << "a handle is one sandbox's";
  EXPECT_TRUE(*store.pools().set_member_warm("h", "identity", "warmth"));
  auto members = *store.pools().members();
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members[0].id, "s");
  EXPECT_EQ(members[0].identity, "identity");
  EXPECT_EQ(members[0].warmth, "warmth");

  io::asio::io_context context;
  auto await = [&](Task<Result<bool>> task) {
    std::optional<Result<bool>> result;
    io::asio::co_spawn(context, std::move(task),
                       [&](const std::exception_ptr&, Result<bool> value) { result = std::move(value); });
    context.restart();
    context.run();
    return std::move(*result);
  };
  Sandbox row;
  row.id = "s";
  row.handle = "h";
  // Without an owner it is refused, and nothing of the claim is left.
  EXPECT_FALSE(await(repository.claim_pool_member(row, {})));
  EXPECT_EQ(store.pools().members()->size(), 1u);
  EXPECT_EQ(*store.sandboxes().find(Scope::everybody(), "s"), nullptr);
  row.owner = "a";
  row.status = {sandbox::State::running, sandbox::Reason::running, "It runs.", wall_now()};
  row.image = "image";
  row.entrypoint = {"a b", "\"c\""};
  row.metadata = {{"k", "v"}, {"b", ""}};
  row.limits = {{"cpu", "1"}};
  row.env_names = {"A"};
  row.extensions = {{"poolRef", "ap"}};
  row.runtime = "native";
  row.identity = "identity";
  row.created = wall_now();
  row.expires = row.created + std::chrono::hours(1);
  EXPECT_TRUE(*await(repository.claim_pool_member(row, {})));
  EXPECT_EQ(store.pools().members()->size(), 0u);
  // What is kept in memory of it is what the disk has.
  auto kept = *store.sandboxes().find(Scope::everybody(), "s");
  ASSERT_NE(kept, nullptr);
  std::vector<sandbox::SandboxPtr> stored;
  ASSERT_TRUE(store.sandboxes().list(Scope::everybody(), {}, -1, 0,
                                     [&](const sandbox::SandboxPtr& one) { stored.push_back(one); }));
  ASSERT_EQ(stored.size(), 1u);
  auto told = [](const Sandbox& s) {
    return std::tuple(s.id, s.owner, s.status.state, s.status.reason, s.status.message, s.status.changed,
                      s.image, s.entrypoint, s.metadata, s.limits, s.env_names, s.extensions, s.platform,
                      s.handle, s.runtime, s.identity, s.created, s.expires);
  };
  EXPECT_EQ(told(*kept), told(*stored[0]));
  row.id = "t";
  EXPECT_FALSE(*await(repository.claim_pool_member(row, {}))) << "nobody gets it twice";
  EXPECT_EQ(*store.sandboxes().find(Scope::everybody(), "t"), nullptr);
}

}  // namespace
}  // namespace osb::store
