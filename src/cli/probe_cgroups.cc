// Probes of control groups. Limits may come from either version: v2 where its controllers are there, v1 where
// they are not.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "cli/machine_probe.h"
#include "cli/probe_tools.h"
#include "launcher/disk.h"
#include "sys/cgroup.h"

namespace osb::cli {
namespace {

// The first mount of version 2, or of version 1 with this controller.
Result<std::string> cgroup_mount(std::string_view controller_or_v2) {
  auto mounts = TRY(read_file("/proc/self/mounts"));
  for (auto line : split(mounts, '\n')) {
    auto fields = split(line, ' ');
    if (fields.size() < 4) continue;
    if (controller_or_v2 == "v2") {
      if (fields[2] == "cgroup2") return std::string(fields[1]);
    } else if (fields[2] == "cgroup") {
      auto options = split(fields[3], ',');
      if (std::ranges::find(options, controller_or_v2) != options.end()) return std::string(fields[1]);
    }
  }
  return fail(Code::not_found, fmt::format("no mount of cgroup {}", controller_or_v2));
}

bool has_word(std::string_view text, std::string_view word) {
  auto words = split(trim(text), ' ');
  return std::ranges::find(words, word) != words.end();
}

class ScratchCgroup {
 public:
  static Result<ScratchCgroup> create(const std::string& mount) {
    std::string path = fmt::format("{}/osb-doctor-{}", mount, ::getpid());
    if (::mkdir(path.c_str(), 0755) < 0) return fail_errno("mkdir " + path);
    return ScratchCgroup(std::move(path));
  }
  ScratchCgroup(ScratchCgroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~ScratchCgroup() {
    // The processes in it are gone, but their removal from the group may lag behind their reaping.
    for (int i = 0; i < 50 && !path_.empty() && ::rmdir(path_.c_str()) < 0 && errno == EBUSY; ++i)
      ::usleep(2000);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchCgroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Limit {
  const char *controller, *v2_file, *v2_value, *v1_file, *v1_value;
};
constexpr Limit kCpu{"cpu", "cpu.max", "50000 100000", "cpu.cfs_quota_us", "50000"};
constexpr Limit kMemory{"memory", "memory.max", "67108864", "memory.limit_in_bytes", "67108864"};
constexpr Limit kPids{"pids", "pids.max", "64", "pids.max", "64"};

Result<std::string> set_and_read(const std::string& mount, const char* file, const char* value) {
  auto group = TRY(ScratchCgroup::create(mount));
  std::string path = fmt::format("{}/{}", group.path(), file);
  TRY(in_context(file, write_file(path, value)));
  auto seen = TRY(read_file(path));
  if (trim(seen) != value) return fail(Code::internal, fmt::format("{} shows {}", file, trim(seen)));
  return std::string(file);
}

Result<std::string> limit_v2(const Limit& limit) {
  auto mount = TRY(cgroup_mount("v2"));
  if (!has_word(TRY(read_file(mount + "/cgroup.controllers")), limit.controller)) {
    return fail(Code::unsupported, fmt::format("no {} controller in {}", limit.controller, mount));
  }
  std::string control = mount + "/cgroup.subtree_control";
  bool was_on = has_word(TRY(read_file(control)), limit.controller);
  if (!was_on) TRY(in_context(control, write_file(control, fmt::format("+{}", limit.controller))));
  auto set = set_and_read(mount, limit.v2_file, limit.v2_value);
  if (!was_on) (void)write_file(control, fmt::format("-{}", limit.controller));
  return fmt::format("version 2, {}", TRY(std::move(set)));
}

template <const Limit& kLimit>
Result<std::string> limit(const Machine&) {
  auto v2 = limit_v2(kLimit);
  if (v2) return v2;
  auto mount = cgroup_mount(kLimit.controller);
  if (!mount)
    return fail(Code::unsupported, fmt::format("{}; {}", v2.error().message, mount.error().message));
  return fmt::format("version 1, {}", TRY(set_and_read(*mount, kLimit.v1_file, kLimit.v1_value)));
}

// A process that only waits, born in the group.
Result<pid_t> waiting_process_in(const ScratchCgroup& group) {
  auto dir = TRY(open_at(AT_FDCWD, group.path(), O_RDONLY | O_DIRECTORY));
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<uint64_t>(dir.get());
  long child = ::syscall(SYS_clone3, &args, sizeof args);
  if (child < 0) return fail_errno("clone3 into a cgroup");
  if (child == 0) {
    for (;;) ::pause();
  }
  return static_cast<pid_t>(child);
}

Result<std::string> placement(const Machine&) {
  auto group = TRY(ScratchCgroup::create(TRY(cgroup_mount("v2"))));
  pid_t child = TRY(waiting_process_in(group));
  auto members = read_file(group.path() + "/cgroup.procs");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (trim(TRY(std::move(members))) != std::to_string(child))
    return fail(Code::internal, "born in another group");
  return "a sandbox is never outside its group";
}

Result<void> wait_for_line(const std::string& path, std::string_view line) {
  for (int i = 0; i < 500; ++i) {
    auto text = TRY(read_file(path));
    auto lines = split(text, '\n');
    if (std::ranges::find(lines, line) != lines.end()) return {};
    ::usleep(2000);
  }
  return fail(Code::timeout, fmt::format("{} never said \"{}\"", path, line));
}

Result<std::string> freeze_and_kill(const Machine&) {
  auto group = TRY(ScratchCgroup::create(TRY(cgroup_mount("v2"))));
  pid_t child = TRY(waiting_process_in(group));
  auto tried = [&]() -> Result<void> {
    TRY(in_context("cgroup.freeze", write_file(group.path() + "/cgroup.freeze", "1")));
    TRY(wait_for_line(group.path() + "/cgroup.events", "frozen 1"));
    return in_context("cgroup.kill", write_file(group.path() + "/cgroup.kill", "1"));
  }();
  if (!tried) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  TRY(std::move(tried));
  return "a whole sandbox stops or ends at once";
}

Result<std::string> disk_limit(const Machine&) {
  if (const char* why = launcher::disk_obstacle()) return fail(Code::unsupported, why);
  return "a file system per sandbox, on a loop device";
}

Result<std::string> speed_limit(const Machine&) {
  auto layout = TRY(sys::CgroupLayout::detect());
  if (layout.io.version == sys::Controller::Version::none) return fail(Code::unsupported, "no io controller");
  if (layout.io.version == sys::Controller::Version::v1)
    return fail(Code::unsupported, "reads only: version 1 does not see writes through the page cache");
  return "reads and writes, through version 2";
}

constexpr Probe kProbes[] = {
    {"cgroup placement", Need::required, placement, "a sandbox has no identity that survives a restart",
     "mount version 2: mount -t cgroup2 none /sys/fs/cgroup/unified; Linux 5.7 or newer; run as root"},
    {"cgroup kill and freeze", Need::required, freeze_and_kill,
     "a sandbox cannot be ended or paused as a whole", "Linux 5.14 or newer with cgroup version 2 mounted"},
    {"memory limit", Need::wanted, limit<kMemory>, "sandboxes that ask for a memory limit are refused",
     "a cgroup memory controller (boot with cgroup_enable=memory), delegated to root here"},
    {"cpu limit", Need::wanted, limit<kCpu>, "sandboxes that ask for a CPU limit are refused",
     "a cgroup cpu controller, delegated to root here"},
    {"process limit", Need::wanted, limit<kPids>,
     "a fork bomb in one sandbox can fill the host's process table",
     "a cgroup pids controller, delegated to root here"},
    {"disk limit", Need::note, disk_limit, "sandboxes that ask for a disk limit are refused",
     "apt-get install e2fsprogs; a kernel with loop devices"},
    {"disk speed limit", Need::note, speed_limit, "sandboxes that ask for io-write are refused",
     "the io controller of cgroup version 2 (boot with systemd.unified_cgroup_hierarchy=1)"},
};

}  // namespace

std::span<const Probe> cgroup_probes() { return kProbes; }

}  // namespace osb::cli
