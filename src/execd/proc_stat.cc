#include "execd/proc_stat.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/strings.h"

namespace osb::execd {

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  // The name is in parentheses and may contain anything, parentheses included: count from the last one.
  size_t close = text.rfind(')');
  if (close == text.npos || close + 2 > text.size()) return std::nullopt;
  auto fields = split(text.substr(close + 2), ' ');
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  auto parent = parse_number<pid_t>(fields[1]), group = parse_number<pid_t>(fields[2]),
       session = parse_number<pid_t>(fields[3]);
  auto start = parse_number<uint64_t>(fields[19]);
  if (!parent || !group || !session || !start) return std::nullopt;
  return ProcStat{fields[0][0], *parent, *group, *session, *start};
}

void for_each_process(const std::function<void(pid_t, const ProcStat&)>& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), ::closedir);
  if (!dir) return;
  while (dirent* entry = ::readdir(dir.get())) {
    auto pid = parse_number<pid_t>(entry->d_name);
    if (!pid) continue;
    auto text = read_file("/proc/" + std::string(entry->d_name) + "/stat", 4096);
    if (!text) continue;
    if (auto stat = parse_proc_stat(*text)) visit(*pid, *stat);
  }
}

uint64_t boot_ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  static const long per_second = ::sysconf(_SC_CLK_TCK);
  uint64_t hz = per_second > 0 ? static_cast<uint64_t>(per_second) : 100;
  return static_cast<uint64_t>(now.tv_sec) * hz + static_cast<uint64_t>(now.tv_nsec) * hz / 1'000'000'000;
}

}  // namespace osb::execd
