#include "cli/log_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

namespace osb::cli {
namespace {

constexpr size_t kLongestLine = 64 << 10;

// It is a copy of a process that is about to become the launcher: what that holds (the port, the terminal)
// must not live longer because of a log.
void keep_only(int one, int other) {
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3 && null >= 0; ++fd) ::dup2(null, fd);
  auto close_between = [](int first, int last) {
    if (first <= last) ::close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0);
  };
  auto [low, high] = std::minmax(one, other);
  close_between(3, low - 1);
  close_between(low + 1, high - 1);
  close_between(high + 1, std::numeric_limits<int>::max());
}

[[noreturn]] void write_until_the_end(Fd from, RotatingFile to) {
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  keep_only(from.get(), to.descriptor());
  ::prctl(PR_SET_NAME, "osb-log");
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::setsid();
  if (::chdir("/") < 0) ::_exit(1);
  copy_lines(from.get(), to);
  ::_exit(0);
}

}  // namespace

void copy_lines(int from, RotatingFile& to) {
  std::string pending;
  std::array<char, 16 << 10> buffer;
  while (true) {
    ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    pending.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = pending.find('\n'); end != pending.npos; end = pending.find('\n', begin)) {
      to.write(std::string_view(pending).substr(begin, end + 1 - begin));
      begin = end + 1;
    }
    pending.erase(0, begin);
    if (pending.size() < kLongestLine) continue;
    to.write(pending + "\n");
    pending.clear();
  }
  if (!pending.empty()) to.write(pending + "\n");
}

Result<void> log_to(RotatingFile file) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("log to a file");
  Fd read_end(ends[0]), write_end(ends[1]);
  pid_t between = ::fork();
  if (between < 0) return fail_errno("log to a file");
  if (between == 0) {
    write_end.reset();
    // Twice, so that it is nobody's child: the launcher waits for its own only.
    pid_t writer = ::fork();
    if (writer == 0) write_until_the_end(std::move(read_end), std::move(file));
    ::_exit(writer < 0 ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(between, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return fail(Code::exhausted, "log to a file: no process could be started");
  // A line that does not fit into the pipe because the disk does not take anything is lost, and nobody waits.
  if (::fcntl(write_end.get(), F_SETFL, O_NONBLOCK) < 0) return fail_errno("log to a file");
  for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(write_end.get(), fd) < 0) return fail_errno("log to a file");
  }
  return {};
}

}  // namespace osb::cli
