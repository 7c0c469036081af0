#include "io/task.h"

#include <gtest/gtest.h>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "io/testing.h"

namespace osb::io {
namespace {

using namespace std::chrono_literals;
using testing::run;

// Counts how many of it are alive: shows that frames were unwound and not forgotten.
struct Live {
  explicit Live(int* c) : count(c) { ++*count; }
  ~Live() { --*count; }
  Live(const Live&) = delete;
  int* count;
};

Task<> sleep_counted(int* live, int* finished) {
  Live guard(live);
  co_await sleep_for(1h);
  ++*finished;
}

Task<> loop_forever(int* live) {
  Live guard(live);
  while (true) co_await sleep_for(1h);
}

Task<> wait_event(Event* event, int* woken) {
  co_await event->wait();
  ++*woken;
}

Task<> group_closes() {
  TaskGroup group(co_await asio::this_coro::executor);
  int live = 0, finished = 0;
  for (int i = 0; i < 10; ++i) group.spawn(sleep_counted(&live, &finished));
  group.spawn(loop_forever(&live));
  co_await yield();
  EXPECT_EQ(live, 11);
  EXPECT_EQ(group.size(), 11u);
  co_await group.close();
  EXPECT_EQ(live, 0);
  EXPECT_EQ(finished, 0);
  EXPECT_EQ(group.size(), 0u);
  group.spawn(sleep_counted(&live, &finished));  // still usable
  co_await group.close();
  EXPECT_EQ(live, 0);
}
TEST(TaskGroup, CloseCancelsAndWaits) { run(group_closes()); }

Task<> spawn_more(TaskGroup* group, int* live, int* finished) {
  Live guard(live);
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await sleep_for(1h);
  group->spawn(sleep_counted(live, finished));
}

Task<> spawn_while_closing() {
  TaskGroup group(co_await asio::this_coro::executor);
  int live = 0, finished = 0;
  group.spawn(spawn_more(&group, &live, &finished));
  co_await yield();
  co_await group.close();
  EXPECT_EQ(live, 0);
  EXPECT_EQ(finished, 0);
}
TEST(TaskGroup, TaskSpawnedWhileClosingIsCancelledToo) { run(spawn_while_closing()); }

Task<> owner_of_group(int* live, int* finished, bool* closed) {
  co_await asio::this_coro::throw_if_cancelled(false);
  TaskGroup inner(co_await asio::this_coro::executor);
  inner.spawn(sleep_counted(live, finished));
  co_await sleep_for(1h);
  co_await inner.close();
  *closed = true;
}

Task<> nested_groups() {
  TaskGroup outer(co_await asio::this_coro::executor);
  int live = 0, finished = 0;
  bool closed = false;
  outer.spawn(owner_of_group(&live, &finished, &closed));
  co_await yield();
  EXPECT_EQ(live, 1);
  co_await outer.close();
  EXPECT_TRUE(closed);
  EXPECT_EQ(live, 0);
}
TEST(TaskGroup, CancelledOwnerCanStillCloseItsGroup) { run(nested_groups()); }

Task<> leave_task_running() {
  TaskGroup group(co_await asio::this_coro::executor);
  int live = 0, finished = 0;
  group.spawn(sleep_counted(&live, &finished));
}
TEST(TaskGroupDeathTest, DestroyingARunningGroupAborts) {
  EXPECT_DEATH(run(leave_task_running()), "task group destroyed while tasks run");
}

Task<> throws() {
  co_await yield();
  throw std::runtime_error("a bug");
}
Task<> group_with_bug() {
  TaskGroup group(co_await asio::this_coro::executor);
  group.spawn(throws());
  co_await sleep_for(1h);
}
TEST(TaskGroupDeathTest, ExceptionEndsTheProcess) {
  EXPECT_DEATH(run(group_with_bug()), "exception left a task.*a bug");
}

Task<Result<int>> slow_answer(int* live) {
  Live guard(live);
  co_await sleep_for(1h);
  co_return 1;
}
Task<Result<int>> quick_answer() {
  co_await yield();
  co_return 42;
}
Task<Result<int>> quick_error() {
  co_await yield();
  co_return fail(Code::not_found, "nothing there");
}
// No default constructor, and it owns something.
struct Owner {
  explicit Owner(int v) : value(std::make_unique<int>(v)) {}
  std::unique_ptr<int> value;
};
Task<Result<Owner>> owner() { co_return Owner(7); }

Task<> deadlines() {
  int live = 0;
  auto late = co_await with_deadline(10ms, "the oracle", slow_answer(&live));
  EXPECT_EQ(live, 0);
  EXPECT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_EQ(late.error().message, "the oracle: no answer within 10 ms");
  auto good = co_await with_deadline(1h, "x", quick_answer());
  EXPECT_EQ(good.value_or(0), 42);
  auto bad = co_await with_deadline(1h, "x", quick_error());
  EXPECT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, Code::not_found);
  auto moved = co_await with_deadline(1h, "x", owner());
  EXPECT_EQ(*moved.value().value, 7);
}
TEST(Deadline, CutsAndPasses) { run(deadlines()); }

Task<> with_inner_deadline(int* live, bool* reached) {
  auto r = co_await with_deadline(1h, "x", slow_answer(live));
  *reached = r.has_value();
}
Task<> cancel_through_deadline() {
  TaskGroup group(co_await asio::this_coro::executor);
  int live = 0;
  bool reached = false;
  group.spawn(with_inner_deadline(&live, &reached));
  co_await yield();
  EXPECT_EQ(live, 1);
  co_await group.close();
  EXPECT_EQ(live, 0);
  EXPECT_FALSE(reached);
}
TEST(Deadline, CancellationReachesTheTask) { run(cancel_through_deadline()); }

Task<> race_ends() {
  int live = 0, finished = 0;
  int first = co_await race(sleep_counted(&live, &finished), yield());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(live, 0);
  EXPECT_EQ(finished, 0);
}
TEST(Race, FirstCancelsTheOther) { run(race_ends()); }

Task<> race_throws() { co_await race(throws(), sleep_for(1h)); }
TEST(Race, PassesExceptionsOn) { EXPECT_THROW(run(race_throws()), std::runtime_error); }

Task<> events() {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup group(executor);
  Event event(executor);
  int woken = 0;
  for (int i = 0; i < 3; ++i) group.spawn(wait_event(&event, &woken));
  co_await yield();
  EXPECT_EQ(woken, 0);
  event.set();
  while (woken < 3) co_await yield();
  co_await event.wait();  // still set: no waiting
  event.reset();
  group.spawn(wait_event(&event, &woken));
  co_await yield();
  EXPECT_EQ(woken, 3);
  co_await group.close();
  EXPECT_EQ(woken, 3);  // cancelled, not woken
}
TEST(Event, WakesAllAndStaysSet) { run(events()); }

TEST(ToError, KeepsErrnoAndMeaning) {
  Error refused =
      to_error("connect x", boost::system::error_code(ECONNREFUSED, boost::system::system_category()));
  EXPECT_EQ(refused.code, Code::unavailable);
  EXPECT_EQ(refused.sys_errno, ECONNREFUSED);
  EXPECT_EQ(refused.message, "connect x: Connection refused");
  EXPECT_EQ(to_error("read", asio::error::eof).code, Code::unavailable);
  EXPECT_EQ(to_error("read", asio::error::operation_aborted).code, Code::cancelled);
}

}  // namespace
}  // namespace osb::io
