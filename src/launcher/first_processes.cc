#include "launcher/first_processes.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "launcher/checks.h"
#include "launcher/rootless.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

// Few, because every descriptor held here is copied to each new process and closed there.
constexpr size_t kMost = 128;

// Only the process itself says that it is gone; that its group cannot be read, or is another one, does not.
Result<void> check_lives(const std::string& id, pid_t pid, uint64_t start_ticks) {
  auto gone = [&] {
    return fail(Code::not_found, "sandbox " + id + " is not the process that was recorded");
  };
  auto pidfd = sys::open_pidfd(pid);
  if (!pidfd && pidfd.error().sys_errno == ESRCH) return gone();
  if (!pidfd) return std::unexpected(std::move(pidfd.error()));
  // Looked at while the descriptor holds the number: it is this process or none.
  auto ticks = sys::process_start_ticks(pid);
  struct pollfd ended{pidfd->get(), POLLIN, 0};
  if (::poll(&ended, 1, 0) > 0) return gone();
  if (TRY(std::move(ticks)) != start_ticks) return gone();
  return {};
}

// Whether it is number 1 in its own pid namespace. One that is gone is not; about one that cannot be looked
// at nobody knows, and whoever took that for "no" would take a sandbox that runs for one that has ended.
Result<bool> is_first(pid_t pid) {
  auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  if (!status && status.error().code == Code::not_found) return false;
  std::string text = TRY(std::move(status));
  size_t at = text.find("\nNSpid:");
  if (at == text.npos) return false;
  std::string_view line = std::string_view(text).substr(at + 1);
  return trim(line.substr(0, line.find('\n'))).ends_with("\t1");
}

}  // namespace

Result<Fd> FirstProcesses::find(const std::string& id) const {
  if (settings_->rootless) return recorded_process(settings_->state_dir, id);
  for (pid_t pid : TRY(cgroups_->processes(id))) {
    if (TRY(is_first(pid))) return sys::open_pidfd(pid);
  }
  return fail(Code::not_found, "sandbox " + id + " has no first process");
}

void FirstProcesses::remember(const std::string& id, Fd pidfd) {
  pidfds_[id] = std::move(pidfd);
  if (pidfds_.size() <= kMost) return;
  auto other = pidfds_.begin();
  pidfds_.erase(other->first == id ? std::next(other) : other);
}

Result<int> FirstProcesses::of(const std::string& id) {
  auto found = pidfds_.find(id);
  if (found != pidfds_.end()) return found->second.get();
  TRY(check_id(id));
  remember(id, TRY(find(id)));
  return pidfds_[id].get();
}

Result<Fd> FirstProcesses::take(const std::string& id) {
  TRY(of(id));
  return std::move(pidfds_.extract(id).mapped());
}

Result<Fd> FirstProcesses::adopt(const std::string& id, const Started& recorded) {
  TRY(check_id(id));
  if (recorded.pid <= 1 || recorded.pid > INT32_MAX)
    return fail(Code::permission_denied, "refused: not a pid");
  auto pid = static_cast<pid_t>(recorded.pid);
  TRY(check_lives(id, pid, recorded.start_ticks));
  auto lost = [&](Error error) {
    error.code = Code::unavailable;
    return std::unexpected(std::move(error).in("sandbox " + id + " lives, but not where it should"));
  };
  auto found = of(id);
  if (!found) return lost(std::move(found.error()));
  std::vector<pid_t> pids;
  if (settings_->rootless) {
    pids.push_back(TRY(sys::pid_of(*found)));
  } else {
    pids = TRY(cgroups_->processes(id));
  }
  if (std::find(pids.begin(), pids.end(), pid) == pids.end())
    return lost({Code::unavailable, 0, "its first process is not in its group"});
  int copy = ::fcntl(*found, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno("copy a pidfd");
  return Fd(copy);
}

}  // namespace osb::launcher
