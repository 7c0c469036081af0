#include "server/keyed_lock.h"

#include <gmock/gmock.h>

#include "server/test_loop.h"

namespace osb::server {
namespace {

using testing::ElementsAre;

struct Fixture {
  TestLoop loop;
  KeyedLock locks{loop.executor()};
  io::Event go{loop.executor()};
  std::vector<std::string> trace;

  io::Task<> hold(std::string key, std::string name) {
    auto guard = co_await locks.lock(key);
    trace.push_back(name + "+");
    co_await go.wait();
    trace.push_back(name + "-");
  }
};

TEST(KeyedLock, HoldersOfOneKeyComeOneAfterTheOther) {
  Fixture f;
  io::TaskGroup group(f.loop.executor());
  for (const char* name : {"a", "b", "c"}) group.spawn(f.hold("k", name));
  f.loop.settle();
  EXPECT_THAT(f.trace, ElementsAre("a+"));
  f.go.set();
  f.loop.settle();
  EXPECT_EQ(f.trace.size(), 6u);
  for (size_t i = 0; i < f.trace.size(); i += 2)
    EXPECT_EQ(f.trace[i][0], f.trace[i + 1][0]) << "no interleaving";
  EXPECT_EQ(f.locks.size(), 0u) << "a key that nobody wants takes no memory";
}

TEST(KeyedLock, DifferentKeysDoNotMeet) {
  Fixture f;
  io::TaskGroup group(f.loop.executor());
  group.spawn(f.hold("k1", "a"));
  group.spawn(f.hold("k2", "b"));
  f.loop.settle();
  EXPECT_THAT(f.trace, ElementsAre("a+", "b+"));
  f.go.set();
  f.loop.settle();
}

TEST(KeyedLock, CancelledHoldersAndWaitersGiveItUp) {
  Fixture f;
  io::TaskGroup first(f.loop.executor()), second(f.loop.executor()), third(f.loop.executor());
  first.spawn(f.hold("k", "a"));
  second.spawn(f.hold("k", "b"));
  third.spawn(f.hold("k", "c"));
  f.loop.settle();
  f.loop.await(second.close());
  f.loop.await(first.close());
  f.loop.settle();
  EXPECT_THAT(f.trace, ElementsAre("a+", "c+"));
  f.loop.await(third.close());
  EXPECT_EQ(f.locks.size(), 0u);
}

}  // namespace
}  // namespace osb::server
