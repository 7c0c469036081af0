#pragma once

// What /proc/<pid>/stat says about a process, as far as execd needs it.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace osb::execd {

struct ProcStat {
  char state = '?';
  pid_t parent = 0, group = 0, session = 0;
  uint64_t cpu_ticks = 0;    // user and system
  uint64_t start_ticks = 0;  // since boot
};

std::optional<ProcStat> parse_proc_stat(std::string_view text);
// Every process that can be seen, with its pid. Nothing when /proc is not mounted.
void for_each_process(const std::function<void(pid_t, const ProcStat&)>& visit);
uint64_t boot_ticks_now();

// A point in the history of processes. Start times are coarse (10 ms); pids are given out in order, so
// together with the last one that was given out they tell older processes from newer ones.
struct Moment {
  uint64_t ticks = 0;
  pid_t last_pid = 0;
  static Moment now();
  // Whether a process that is seen at the moment `seen` started after this one.
  bool before_start_of(pid_t pid, const ProcStat& stat, const Moment& seen) const;
};
// The fifth word of /proc/loadavg.
std::optional<pid_t> parse_last_pid(std::string_view loadavg);

}  // namespace osb::execd
