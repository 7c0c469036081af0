#include "sys/process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/strings.h"

namespace osb::sys {

Result<Fd> open_pidfd(pid_t pid) {
  long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return fail_errno("pidfd_open " + std::to_string(pid));
  return Fd(static_cast<int>(fd));
}

Result<void> send_signal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) < 0 && errno != ESRCH)
    return fail_errno("signal a process");
  return {};
}

Result<pid_t> pid_of(int pidfd) {
  std::string text = TRY(read_file("/proc/self/fdinfo/" + std::to_string(pidfd)));
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("Pid:")) continue;
    auto pid = parse_number<pid_t>(trim(line.substr(4)));
    if (pid && *pid > 0) return *pid;
  }
  return fail(Code::not_found, "the process is gone");
}

Result<uint64_t> process_start_ticks(pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::string stat = TRY(read_file(path));
  // The command name may contain blanks and parentheses; fields are counted from behind its last parenthesis.
  size_t end = stat.rfind(')');
  if (end == stat.npos || end + 2 > stat.size()) return fail(Code::corrupt, path + ": no command name");
  auto fields = split(std::string_view(stat).substr(end + 2), ' ');
  if (fields.size() < 20) return fail(Code::corrupt, path + ": too few fields");
  auto ticks = parse_number<uint64_t>(fields[19]);
  if (!ticks) return fail(Code::corrupt, path + ": no start time");
  return *ticks;
}

Result<std::string> boot_id() {
  std::string text = TRY(read_file("/proc/sys/kernel/random/boot_id"));
  return std::string(trim(text));
}

}  // namespace osb::sys
