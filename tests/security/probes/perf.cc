#include <linux/perf_event.h>

#include "tools.h"

namespace osb::probe {
namespace {

void attempt(Attempts& a, const char* what, unsigned type, unsigned long config, pid_t pid, int cpu) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.disabled = 1;
  attr.exclude_kernel = pid == 0;
  attr.exclude_hv = 1;
  File event = static_cast<int>(::syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
  a.call("perf_event_open(2)", what, event.fd());
}

void run(Attempts& a, Args) {
  attempt(a, "own task clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, -1);
  attempt(a, "all of a processor", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0);
}

}  // namespace

extern const Probe probe_perf = {"perf", "measure with perf_event_open", nullptr, run};

}  // namespace osb::probe
