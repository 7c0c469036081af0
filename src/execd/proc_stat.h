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
  uint64_t start_ticks = 0;  // since boot
};

std::optional<ProcStat> parse_proc_stat(std::string_view text);
// Every process that can be seen, with its pid. Nothing when /proc is not mounted.
void for_each_process(const std::function<void(pid_t, const ProcStat&)>& visit);
uint64_t boot_ticks_now();

}  // namespace osb::execd
