#include "execd/proc_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace osb::execd {
namespace {

TEST(ProcStat, names_may_contain_anything) {
  auto stat = parse_proc_stat("42 (a) b) (c)) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->group, 40);
  EXPECT_EQ(stat->session, 39);
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

}  // namespace
}  // namespace osb::execd
