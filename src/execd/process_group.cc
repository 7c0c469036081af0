#include "execd/process_group.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "execd/proc_stat.h"

namespace osb::execd {
namespace {

constexpr unsigned kToProcessGroup = 1u << 2;  // PIDFD_SIGNAL_PROCESS_GROUP

}  // namespace

ProcessGroup::ProcessGroup(pid_t leader)
    : pgid_(leader), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0))) {}

void ProcessGroup::leader_reaped() {
  reaped_ = true;
  reaped_at_ticks_ = boot_ticks_now();
}

bool ProcessGroup::signal(int number) {
  if (!reaped_) return ::kill(-pgid_, number) == 0;
  if (pidfd_.valid()) {
    long result = ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, kToProcessGroup);
    if (result == 0) return true;
    if (errno == ESRCH) return false;
  }
  return same_group_lives() && ::kill(-pgid_, number) == 0;
}

bool ProcessGroup::same_group_lives() const {
  bool found = false;
  for_each_process([&](pid_t, const ProcStat& stat) {
    found = found || (stat.group == pgid_ && stat.start_ticks < reaped_at_ticks_);
  });
  return found;
}

}  // namespace osb::execd
