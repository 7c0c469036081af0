#include "sys/short_turns.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace osb::sys {
namespace {

// Shorter than the kernel's own on any machine, and long enough for what one request needs.
constexpr uint64_t kTurnNanos = 500'000;

bool take_turns(uint64_t nanos) {
  // Whoever was given another kind of turns on purpose keeps those.
  if (::sched_getscheduler(0) != SCHED_OTHER) return false;
  errno = 0;
  int nice = ::getpriority(PRIO_PROCESS, 0);
  if (nice == -1 && errno != 0) return false;
  Turns wanted;
  wanted.nice = nice;
  wanted.runtime = nanos;
  return ::syscall(SYS_sched_setattr, 0, &wanted, 0) == 0;
}

}  // namespace

bool take_short_turns() { return take_turns(kTurnNanos); }

void take_usual_turns() { take_turns(0); }

}  // namespace osb::sys
