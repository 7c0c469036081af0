#include "launcher/rootless.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "base/strings.h"
#include "sys/cgroup_delegation.h"
#include "sys/mount.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

std::string note_path(const std::string& state_dir, const std::string& id) {
  return state_dir + "/" + state::kSandboxes + "/" + id + "/process";
}

}  // namespace

Result<sys::CgroupTree> rootless_cgroups(const std::string& name) {
  auto layout = sys::delegated_layout(name + "-service");
  if (layout) return sys::CgroupTree::open(std::move(*layout), name);
  log::info("no cgroups for sandboxes", {{"reason", layout.error().message}});
  return sys::CgroupTree::none(
      sys::Weakening{"limits on cpu and memory, and freezing",
                     "an ordinary user has no cgroups; the tier of every sandbox names it"});
}

void find_group(sys::CgroupTree& cgroups, const std::string& id, pid_t first_process) {
  if (!cgroups.exists()) return;
  std::string group =
      sys::v2_group(read_file("/proc/" + std::to_string(first_process) + "/cgroup").value_or(""));
  auto host = sys::CgroupLayout::detect();
  // Its own group bears its name; without one it is in that of the service which made it.
  if (host && group.ends_with("/" + id)) cgroups.find_elsewhere(id, host->v2 + group);
}

std::string abilities(const sys::CgroupTree& cgroups) {
  std::string out = "freeze";
  const sys::CgroupLayout& layout = cgroups.layout();
  for (auto [name, controller] : {std::pair("cpu", &layout.cpu), std::pair("memory", &layout.memory),
                                  std::pair("pids", &layout.pids)}) {
    if (controller->version != sys::Controller::Version::none) out.append(",").append(name);
  }
  return out;
}

sys::CgroupLimits enforceable(sys::CgroupLimits limits, const sys::CgroupLayout& layout) {
  constexpr auto kUnlimited =
      sys::Weakening{"limits on cpu, memory and the number of processes",
                     "their controllers were not delegated; the tier of every sandbox names it"};
  auto keep = [](std::optional<int64_t>& limit, const sys::Controller& controller, const sys::Weakening&) {
    if (controller.version == sys::Controller::Version::none) limit.reset();
  };
  keep(limits.cpu_millis, layout.cpu, kUnlimited);
  keep(limits.memory_bytes, layout.memory, kUnlimited);
  keep(limits.pids, layout.pids, kUnlimited);
  return limits;
}

Result<Gate> Gate::create() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  return Gate{Fd(pipe[0]), Fd(pipe[1])};
}

Result<void> Gate::pass(Result<void> recorded) {
  TRY(std::move(recorded));
  return write_all(open.get(), "1");
}

Result<void> record_process(const std::string& state_dir, const std::string& id, pid_t pid) {
  std::string note = std::to_string(pid) + " " + std::to_string(TRY(sys::process_start_ticks(pid))) + " " +
                     TRY(sys::boot_id());
  return in_context("note the sandbox's first process",
                    write_file(note_path(state_dir, id), note, O_CREAT | O_EXCL, 0600));
}

Result<Fd> recorded_process(const std::string& state_dir, const std::string& id) {
  std::string note = TRY(read_file(note_path(state_dir, id), 256));
  auto gone = [&] { return fail(Code::not_found, "sandbox " + id + " has no first process"); };
  auto words = split(note, ' ');
  auto pid = words.size() == 3 ? parse_number<pid_t>(words[0]) : std::nullopt;
  auto ticks = words.size() == 3 ? parse_number<uint64_t>(words[1]) : std::nullopt;
  // Half a note: the launcher died while it wrote it, and the process ended at the gate.
  if (!pid || *pid <= 1 || !ticks) return gone();
  if (words[2] != TRY(sys::boot_id())) return gone();
  Fd pidfd = TRY(sys::open_pidfd(*pid));
  // Looked at while the descriptor holds the number: it is this process or none.
  auto now = sys::process_start_ticks(*pid);
  struct pollfd ended{pidfd.get(), POLLIN, 0};
  int is_ended = ::poll(&ended, 1, 0);
  if (is_ended < 0) return fail_errno("look at the first process of sandbox " + id);
  if (is_ended > 0) return gone();
  if (TRY(std::move(now)) != *ticks) return gone();
  return pidfd;
}

int wait_until_recorded(int gate, int gate_writer) {
  // Or this process itself would keep the pipe open, and wait for ever for a launcher that is gone.
  ::close(gate_writer);
  char byte = 0;
  ssize_t n = ::read(gate, &byte, 1);
  return n < 0 ? -errno : n == 1 ? 0 : -ECANCELED;
}

int bind_host_device(int dev, const char* name) {
  char path[64];
  std::snprintf(path, sizeof path, "/dev/%s", name);
  int mount = sys::clone_mount(AT_FDCWD, path);
  int status = mount < 0 ? mount : sys::restrict_mount(mount, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (status == 0) {
    int file = ::openat(dev, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    status = file < 0 ? -errno : sys::attach_mount(mount, dev, name);
    if (file >= 0) ::close(file);
  }
  if (mount >= 0) ::close(mount);
  return status;
}

}  // namespace osb::launcher
