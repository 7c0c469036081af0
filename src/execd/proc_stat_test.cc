#include "execd/proc_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace osb::execd {
namespace {

TEST(ProcStat, names_may_contain_anything) {
  auto stat = parse_proc_stat("42 (a) b) (c)) S 1 40 39 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 12345 1 2\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->group, 40);
  EXPECT_EQ(stat->session, 39);
  EXPECT_EQ(stat->cpu_ticks, 110u);
  EXPECT_EQ(stat->start_ticks, 12345u);
}

TEST(ProcStat, rejects) {
  for (const char* text :
       {"", "42", "42 (x)", "42 (x) S 1 2", "42 (x) S a b c 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 1 1 2"}) {
    EXPECT_FALSE(parse_proc_stat(text)) << text;
  }
}

TEST(ProcStat, finds_this_process) {
  bool found = false;
  for_each_process([&](pid_t pid, const ProcStat& stat) {
    if (pid != ::getpid()) return;
    found = true;
    EXPECT_EQ(stat.parent, ::getppid());
    EXPECT_LE(stat.start_ticks, boot_ticks_now());
  });
  EXPECT_TRUE(found);
}

TEST(Moment, older_and_newer_within_one_tick) {
  Moment then{100, 50}, later{100, 60}, wrapped{200, 20};
  ProcStat same_tick{};
  same_tick.start_ticks = 100;
  EXPECT_FALSE(then.before_start_of(50, same_tick, later));
  EXPECT_TRUE(then.before_start_of(51, same_tick, later));
  EXPECT_FALSE(then.before_start_of(7, same_tick, later));
  ProcStat old = same_tick, young = same_tick;
  old.start_ticks = 99;
  young.start_ticks = 150;
  EXPECT_FALSE(then.before_start_of(55, old, later)) << "its number was used before";
  EXPECT_TRUE(then.before_start_of(15, young, wrapped));
  EXPECT_FALSE(then.before_start_of(30, young, wrapped));
  EXPECT_TRUE(Moment({100, 0}).before_start_of(7, same_tick, later)) << "without pids the time must do";
}

TEST(Moment, last_pid) {
  EXPECT_EQ(parse_last_pid("0.00 0.01 0.05 1/123 4567\n"), 4567);
  EXPECT_FALSE(parse_last_pid("0.00 0.01\n"));
  EXPECT_GT(Moment::now().last_pid, 0);
}

}  // namespace
}  // namespace osb::execd
