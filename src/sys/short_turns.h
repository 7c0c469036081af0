#pragma once

// For a daemon that others wait for, and that never needs the processor for long.

#include <sched.h>

#include <cstdint>

namespace osb::sys {

// The kernel's struct sched_attr in its first form. Its header cannot be included beside the C library's
// sched.h.
struct Turns {
  uint32_t size = sizeof(Turns), policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;  // 0: the kernel's own length
};
static_assert(sizeof(Turns) == 48);

// From now on this thread is let in at once when it is woken, also where a process has just begun that will
// use its processor for a while: by short turns, not by a larger share of the time. Threads that it starts do
// the same; processes, too, until they set their turns to the usual length (SYS_sched_setattr with Turns of
// their nice value, as take_usual_turns() does): the kernel's own way to begin anew with a fork takes a
// negative nice value along, and that of threads as well. Kernels before 6.12 know only one length. False:
// nothing was changed, because somebody has chosen another kind of turns.
bool take_short_turns();
// The opposite, for a thread that has much to do and that nobody waits for.
void take_usual_turns();

}  // namespace osb::sys
