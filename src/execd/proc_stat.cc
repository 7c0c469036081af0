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
  auto user = parse_number<uint64_t>(fields[11]), system = parse_number<uint64_t>(fields[12]),
       start = parse_number<uint64_t>(fields[19]);
  if (!parent || !group || !session || !user || !system || !start) return std::nullopt;
  return ProcStat{fields[0][0], *parent, *group, *session, *user + *system, *start};
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

std::optional<pid_t> parse_last_pid(std::string_view loadavg) {
  auto words = split(trim(loadavg), ' ');
  return words.size() == 5 ? parse_number<pid_t>(words[4]) : std::nullopt;
}

Moment Moment::now() {
  auto text = read_file("/proc/loadavg", 256);
  return {boot_ticks_now(), text ? parse_last_pid(*text).value_or(0) : 0};
}

bool Moment::before_start_of(pid_t pid, const ProcStat& stat, const Moment& seen) const {
  if (stat.start_ticks < ticks) return false;
  if (last_pid == 0 || seen.last_pid == 0) return true;
  bool wrapped = seen.last_pid < last_pid;
  return wrapped ? pid > last_pid || pid <= seen.last_pid : pid > last_pid && pid <= seen.last_pid;
}

}  // namespace osb::execd
