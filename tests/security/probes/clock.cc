#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

#include "tools.h"

namespace osb::probe {
namespace {

void run(Attempts& a, Args) {
  // Neither a time nor a zone: the privilege check is all that happens.
  a.call("settimeofday(2)", "nothing to set", ::syscall(SYS_settimeofday, nullptr, nullptr));
  timex now = {};
  if (::adjtimex(&now) >= 0) {
    timex same = {};
    same.modes = ADJ_TICK;  // written back as it is
    same.tick = now.tick;
    a.call("adjtimex(2)", "the same tick", ::adjtimex(&same));
    same.modes = ADJ_TICK;
    a.call("clock_adjtime(2)", "the same tick", ::syscall(SYS_clock_adjtime, CLOCK_REALTIME, &same));
  } else {
    a.call("adjtimex(2)", "reading", -1);
  }
}

}  // namespace

extern const Probe probe_clock = {"clock", "set the host's clock", nullptr, run};

}  // namespace osb::probe
