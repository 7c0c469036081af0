#pragma once

// For a daemon that others wait for, and that never needs the processor for long.

namespace osb::sys {

// From now on this thread is let in at once when it is woken, also where a process has just begun that will
// use its processor for a while: by short turns, not by a larger share of the time. What it starts takes
// turns of the usual length. Kernels before 6.12 know only that one, and nothing changes there.
void take_short_turns();

}  // namespace osb::sys
