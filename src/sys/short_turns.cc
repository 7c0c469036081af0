#include "sys/short_turns.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace osb::sys {
namespace {

// The kernel's struct sched_attr in its first form. Its header cannot be included beside the C library's
// sched.h.
struct Turns {
  uint32_t size = sizeof(Turns), policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(Turns) == 48);

constexpr uint64_t kResetOnFork = 0x01;
// Shorter than the kernel's own on any machine, and long enough for what one request needs.
constexpr uint64_t kTurnNanos = 500'000;

}  // namespace

void take_short_turns() {
  // Whoever was given another kind of turns on purpose keeps those.
  if (::sched_getscheduler(0) != SCHED_OTHER) return;
  errno = 0;
  int nice = ::getpriority(PRIO_PROCESS, 0);
  if (nice == -1 && errno != 0) return;
  Turns wanted;
  wanted.flags = kResetOnFork;
  wanted.nice = nice;
  wanted.runtime = kTurnNanos;
  ::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

}  // namespace osb::sys
