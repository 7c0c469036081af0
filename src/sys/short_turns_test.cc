#include "sys/short_turns.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace osb::sys {
namespace {

constexpr size_t kAttrBytes = 48, kRuntimeAt = 24;

// 0 where the kernel tells no length of turns.
uint64_t turn_nanos() {
  std::array<char, kAttrBytes> attr{};
  if (::syscall(SYS_sched_getattr, 0, attr.data(), attr.size(), 0) != 0) return 0;
  uint64_t nanos = 0;
  std::memcpy(&nanos, attr.data() + kRuntimeAt, sizeof nanos);
  return nanos;
}

// What `look` sees in a child that runs `first` before.
template <class First, class Look>
uint64_t in_child(First first, Look look) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  pid_t child = ::fork();
  if (child == 0) {
    first();
    uint64_t seen = look();
    ::_exit(::write(ends[1], &seen, sizeof seen) == sizeof seen ? 0 : 1);
  }
  uint64_t seen = 0;
  EXPECT_EQ(::read(ends[0], &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return seen;
}

TEST(ShortTurns, are_shorter_until_the_usual_ones_are_set) {
  uint64_t usual = turn_nanos();
  if (usual == 0) GTEST_SKIP() << "this kernel knows one length of turns";
  EXPECT_LT(in_child(take_short_turns, turn_nanos), usual);
  auto of_its_child = [] { return in_child(take_usual_turns, turn_nanos); };
  EXPECT_EQ(in_child(take_short_turns, of_its_child), usual);
}

TEST(ShortTurns, leave_the_nice_value_to_what_is_started) {
  auto nice = [] { return static_cast<uint64_t>(20 + int64_t{::getpriority(PRIO_PROCESS, 0)}); };
  auto first = [] {
    if (::setpriority(PRIO_PROCESS, 0, -5) == 0) take_short_turns();
  };
  auto before = in_child(first, nice);
  if (before != 15) GTEST_SKIP() << "a negative nice value is not for this user";
  EXPECT_EQ(in_child(first, [&] { return in_child([] {}, nice); }), before);
}

}  // namespace
}  // namespace osb::sys
