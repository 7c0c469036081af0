#include "cli/machine_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/fd.h"

namespace osb::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kProbeTime = std::chrono::seconds(10);
constexpr size_t kMaxAnswer = 4096;

// '+' and what was seen, or '-', the error code and the message.
[[noreturn]] void answer_and_exit(int fd, const Result<std::string>& result) {
  std::string bytes = result ? "+" + *result
                             : std::string("-") + static_cast<char>(static_cast<int>(result.error().code)) +
                                   result.error().message;
  bytes.resize(std::min(bytes.size(), kMaxAnswer));
  auto written = write_all(fd, bytes);
  ::_exit(written ? 0 : 1);
}

// Everything until the child closes its end, or the deadline.
Result<std::string> read_answer(int fd) {
  std::string bytes;
  auto deadline = Clock::now() + kProbeTime;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd p{fd, POLLIN, 0};
    int ready = left > 0 ? ::poll(&p, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fail(Code::timeout, "the probe did not end within 10 s");
    char buffer[512];
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0) return fail_errno("read");
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
    if (bytes.size() > kMaxAnswer) return fail(Code::too_large, "the probe said too much");
  }
}

}  // namespace

Machine machine_at(std::string state_dir) {
  std::error_code error;
  std::filesystem::path work = state_dir;
  while (!std::filesystem::is_directory(work, error) && work.has_relative_path()) work = work.parent_path();
  return {std::move(state_dir), work.string()};
}

Result<std::string> run_in_child(const std::function<Result<std::string>()>& probe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    ::setpgid(0, 0);  // helpers of the probe die with it
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    read_end.reset();
    answer_and_exit(write_end.get(), probe());
  }
  write_end.reset();
  auto bytes = read_answer(read_end.get());
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!bytes) return std::unexpected(bytes.error());
  if (bytes->starts_with('+')) return bytes->substr(1);
  if (bytes->starts_with('-') && bytes->size() >= 2) {
    return fail(static_cast<Code>((*bytes)[1]), bytes->substr(2));
  }
  if (WIFSIGNALED(status))
    return fail(Code::internal, std::string("the probe died: ") + ::strsignal(WTERMSIG(status)));
  return fail(Code::internal, "the probe ended without an answer");
}

std::vector<Finding> probe_machine(const Machine& machine) {
  std::vector<Finding> findings;
  for (auto group : {host_probes(), mount_probes(), process_probes(), cgroup_probes(), network_probes(),
                     rootless_probes()}) {
    for (const Probe& probe : group) {
      findings.push_back({&probe, run_in_child([&] { return probe.run(machine); })});
    }
  }
  return findings;
}

}  // namespace osb::cli
