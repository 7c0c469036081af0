#include "server/create_queue.h"

#include <gmock/gmock.h>

#include "server/test_loop.h"

namespace osb::server {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct Fixture {
  explicit Fixture(CreateQueue::Limits limits) : queue(loop.executor(), limits) {}

  TestLoop loop;
  CreateQueue queue;
  io::Event go{loop.executor()};
  std::vector<std::string> trace;

  io::Task<> work(std::string name) {
    auto turn = co_await queue.enter();
    trace.push_back(name + (turn ? "+" : "!" + std::to_string(turn.error().status)));
    if (turn) co_await go.wait();
  }
  void wait_until(auto condition) {
    auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < deadline) loop.await(io::sleep_for(1ms));
    EXPECT_TRUE(condition());
  }
};

TEST(CreateQueue, SomeRunTheOthersComeInTheirOrder) {
  Fixture f({.at_once = 2, .patience = 60s, .longest_turn = 60s});
  io::TaskGroup group(f.loop.executor());
  for (const char* name : {"a", "b", "c", "d", "e"}) group.spawn(f.work(name));
  f.loop.settle();
  EXPECT_THAT(f.trace, ElementsAre("a+", "b+"));
  EXPECT_EQ(f.queue.waiting(), 3u);
  f.go.set();
  f.loop.settle();
  EXPECT_THAT(f.trace, ElementsAre("a+", "b+", "c+", "d+", "e+"));
  EXPECT_EQ(f.queue.running(), 0u);
  EXPECT_EQ(f.queue.waiting(), 0u);
}

TEST(CreateQueue, WhoWaitedTooLongIsToldToComeBack) {
  Fixture f({.at_once = 1, .patience = 10ms, .longest_turn = 60s});
  io::TaskGroup group(f.loop.executor());
  for (const char* name : {"a", "b"}) group.spawn(f.work(name));
  f.wait_until([&] { return f.trace.size() == 2; });
  EXPECT_THAT(f.trace, ElementsAre("a+", "b!429"));
  f.go.set();
  f.loop.settle();
  EXPECT_EQ(f.queue.running(), 0u);
}

TEST(CreateQueue, ASlowOneDoesNotHoldTheOthersUp) {
  Fixture f({.at_once = 1, .patience = 60s, .longest_turn = 10ms});
  io::TaskGroup group(f.loop.executor());
  for (const char* name : {"a", "b", "c"}) group.spawn(f.work(name));
  f.wait_until([&] { return f.trace.size() == 3; });
  EXPECT_THAT(f.trace, ElementsAre("a+", "b+", "c+"));
  f.go.set();
  f.loop.settle();
  f.wait_until([&] { return f.queue.running() == 0; });
}

TEST(CreateQueue, WhoIsCancelledLeaves) {
  Fixture f({.at_once = 1, .patience = 60s, .longest_turn = 60s});
  io::TaskGroup first(f.loop.executor()), second(f.loop.executor()), third(f.loop.executor());
  first.spawn(f.work("a"));
  second.spawn(f.work("b"));
  third.spawn(f.work("c"));
  f.loop.settle();
  f.loop.await(second.close());
  EXPECT_EQ(f.queue.waiting(), 1u);
  f.loop.await(first.close());
  f.loop.settle();
  EXPECT_THAT(f.trace, ElementsAre("a+", "b!429", "c+"));  // nobody hears what b is told
  f.loop.await(third.close());
  EXPECT_EQ(f.queue.running(), 0u);
}

}  // namespace
}  // namespace osb::server
