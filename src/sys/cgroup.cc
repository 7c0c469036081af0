#include "sys/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/cleanup.h"
#include "base/strings.h"
#include "sys/file_lock.h"
#include "sys/weakening.h"

namespace osb::sys {
namespace {

constexpr int64_t kCpuPeriodMicros = 100'000;
// What the daemon has for itself in each period: two of the slices in which the kernel gives out quota.
constexpr int64_t kDaemonMicros = 10'000;

Result<void> make_group(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) return fail_errno("make cgroup " + path);
  return {};
}

// Writes "+cpu +memory +pids" so that children of `group` get these controllers; those already on stay on.
Result<void> delegate(const std::string& group, const CgroupLayout& layout) {
  auto want = [&](const Controller& c, const char* word) -> Result<void> {
    if (c.version != Controller::Version::v2) return {};
    return in_context("enable a controller; the group must be ours to delegate",
                      write_file(group + "/cgroup.subtree_control", word));
  };
  TRY(want(layout.cpu, "+cpu"));
  TRY(want(layout.memory, "+memory"));
  TRY(want(layout.io, "+io"));
  return want(layout.pids, "+pids");
}

bool shares_out(const CgroupLayout& layout) {
  auto is_v2 = [](const Controller& c) { return c.version == Controller::Version::v2; };
  return is_v2(layout.cpu) || is_v2(layout.memory) || is_v2(layout.pids) || is_v2(layout.io);
}

// A group with processes cannot share out controllers (worse: it may take some of them, and then its children
// take no process), so this one goes to a group `leaf` below. Only the top of the whole hierarchy is exempt.
// Code::unsupported when others stay.
Result<void> make_room(const std::string& group, const std::string& leaf) {
  if (::access((group + "/cgroup.type").c_str(), F_OK) < 0) return {};
  if (trim(TRY(read_file(group + "/cgroup.procs"))).empty()) return {};
  TRY(make_group(group + "/" + leaf));
  TRY(in_context("make room in cgroup " + group, write_file(group + "/" + leaf + "/cgroup.procs", "0")));
  if (trim(TRY(read_file(group + "/cgroup.procs"))).empty()) return {};
  return fail(Code::unsupported,
              "other processes are in the cgroup " + group +
                  ", so no limits can be set below it; let the service be the first process there, or move "
                  "them first (mkdir " +
                  group + "/init; for p in $(cat " + group + "/cgroup.procs); do echo $p > " + group +
                  "/init/cgroup.procs; done)");
}

// A v1 group of processors takes no process before it has some; its children get the same ones.
Result<void> open_cpuset(const std::string& mount, const std::string& group) {
  TRY(make_group(group));
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"})
    TRY(write_file(group + file, trim(TRY(read_file(mount + file)))));
  return write_file(group + "/cgroup.clone_children", "1");
}

Result<void> apply(const std::string& group, const std::string& file, int64_t value) {
  return in_context("limit", write_file(group + "/" + file, std::to_string(value)));
}

Result<void> set_quota(const std::string& group, Controller::Version version, int64_t micros) {
  if (version == Controller::Version::v2)
    return write_file(group + "/cpu.max", std::to_string(micros) + " " + std::to_string(kCpuPeriodMicros));
  TRY(apply(group, "cpu.cfs_period_us", kCpuPeriodMicros));
  return apply(group, "cpu.cfs_quota_us", micros);
}

}  // namespace

CgroupLayout CgroupLayout::parse(std::string_view mountinfo, std::string_view v2_controllers) {
  CgroupLayout layout;
  auto claim = [](Controller& c, Controller::Version version, std::string_view mount) {
    if (c.version == Controller::Version::none) c = {version, std::string(mount)};
  };
  for (std::string_view line : split(mountinfo, '\n')) {
    size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    auto left = split(line.substr(0, dash), ' ');
    auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    // Only the whole hierarchy counts, not a bind of some group in it.
    if (left[3] != "/") continue;
    if (right[0] == "cgroup2" && layout.v2.empty()) {
      layout.v2 = left[4];
      for (std::string_view word : split(trim(v2_controllers), ' ')) {
        if (word == "cpu") claim(layout.cpu, Controller::Version::v2, left[4]);
        if (word == "memory") claim(layout.memory, Controller::Version::v2, left[4]);
        if (word == "pids") claim(layout.pids, Controller::Version::v2, left[4]);
        if (word == "io") claim(layout.io, Controller::Version::v2, left[4]);
      }
    }
    if (right[0] == "cgroup") {
      for (std::string_view word : split(right[2], ',')) {
        if (word == "cpu") claim(layout.cpu, Controller::Version::v1, left[4]);
        if (word == "memory") claim(layout.memory, Controller::Version::v1, left[4]);
        if (word == "pids") claim(layout.pids, Controller::Version::v1, left[4]);
        if (word == "blkio") claim(layout.io, Controller::Version::v1, left[4]);
        if (word == "cpuset" && layout.cpuset.empty()) layout.cpuset = left[4];
        if (word == "cpuacct" && layout.cpuacct.empty()) layout.cpuacct = left[4];
      }
    }
  }
  return layout;
}

Result<CgroupLayout> CgroupLayout::detect() {
  std::string mountinfo = TRY(read_file("/proc/self/mountinfo", 16 << 20));
  CgroupLayout first = parse(mountinfo, "");
  std::string controllers;
  if (!first.v2.empty()) controllers = read_file(first.v2 + "/cgroup.controllers").value_or("");
  return parse(mountinfo, controllers);
}

std::string v2_group(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("0::/")) return std::string(line.substr(3));
  }
  return {};
}

Result<CgroupLayout> delegated_layout(const std::string& leaf) {
  std::string mount = TRY(CgroupLayout::detect()).v2;
  std::string group = v2_group(TRY(read_file("/proc/self/cgroup")));
  if (mount.empty() || group.empty()) return fail(Code::unsupported, "there is no cgroup version 2 here");
  if (group.ends_with("/" + leaf)) group.resize(group.size() - leaf.size() - 1);
  if (group.size() <= 1) return fail(Code::unsupported, "the service is in the root group");
  CgroupLayout layout;
  layout.v2 = mount + group;
  for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    std::string path = layout.v2 + file;
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) < 0)
      return fail(Code::unsupported, "the group " + group + " is not delegated to the service's user");
  }
  std::string offered = TRY(read_file(layout.v2 + "/cgroup.controllers"));
  struct Wanted {
    const char* name;
    Controller* controller;
  };
  const Wanted wanted[] = {{"cpu", &layout.cpu}, {"memory", &layout.memory}, {"pids", &layout.pids}};
  auto words = split(trim(offered), ' ');
  auto is_offered = [&](const Wanted& w) {
    return std::find(words.begin(), words.end(), w.name) != words.end();
  };
  if (std::none_of(std::begin(wanted), std::end(wanted), is_offered)) return layout;
  // While other processes are in the group the controllers stay away, and the tier says so.
  auto room = make_room(layout.v2, leaf);
  if (!room && room.error().code == Code::unsupported) return layout;
  TRY(std::move(room));
  for (const Wanted& w : wanted) {
    if (!is_offered(w)) continue;
    if (write_file(layout.v2 + "/cgroup.subtree_control", std::string("+") + w.name))
      *w.controller = {Controller::Version::v2, layout.v2};
  }
  return layout;
}

std::vector<std::string> cgroup2_options(std::string_view mountinfo) {
  std::vector<std::string> options;
  for (std::string_view line : split(mountinfo, '\n')) {
    size_t dash = line.find(" - cgroup2 ");
    if (dash == line.npos) continue;
    for (std::string_view option : split(line.substr(line.rfind(' ') + 1), ',')) {
      if (option != "rw" && option != "ro") options.emplace_back(option);
    }
    return options;
  }
  return options;
}

Result<void> favour_group_changes(const CgroupLayout& layout) {
  bool v1 = false;
  for (const Controller* c : {&layout.cpu, &layout.memory, &layout.pids})
    v1 |= c->version == Controller::Version::v1;
  if (!v1 || layout.v2.empty()) return {};
  auto options = cgroup2_options(TRY(read_file("/proc/self/mountinfo", 16 << 20)));
  if (std::find(options.begin(), options.end(), "favordynmods") != options.end()) return {};
  // There is one superblock for the whole host. Asking for it again sets its options to exactly the ones
  // named.
  Fd context(::fsopen("cgroup2", FSOPEN_CLOEXEC));
  if (!context.valid()) return fail_errno("fsopen cgroup2");
  if (::fsconfig(context.get(), FSCONFIG_SET_FLAG, "favordynmods", nullptr, 0) < 0) return {};
  for (const std::string& option : options) {
    if (::fsconfig(context.get(), FSCONFIG_SET_FLAG, option.c_str(), nullptr, 0) < 0)
      return fail_errno("keep " + option);
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return fail_errno("favour group changes");
  return {};
}

Result<CgroupTree> CgroupTree::open(CgroupLayout layout, std::string name) {
  if (layout.v2.empty()) {
    return fail(
        Code::unsupported,
        "no cgroup2 file system is mounted; mount one (mount -t cgroup2 none /sys/fs/cgroup/unified)");
  }
  CgroupTree tree(std::move(layout), std::move(name));
  if (shares_out(tree.layout_)) TRY(make_room(tree.layout_.v2, tree.name_ + "-service"));
  TRY(tree.make_parents());
  auto ours = [&](std::vector<std::string> mounts) {
    for (std::string& mount : mounts) mount = tree.path(mount, "");
    return mounts;
  };
  tree.spent_ = SpentGroups(ours(tree.v1_mounts()), ours(tree.v1_sometimes()));
  auto alive = TRY(tree.list());
  tree.spent_.sweep({alive.begin(), alive.end()});
  return tree;
}

Result<void> CgroupTree::make_parents() {
  TRY(delegate(layout_.v2, layout_));
  TRY(make_group(path(layout_.v2, "")));
  TRY(lock());
  TRY(delegate(path(layout_.v2, ""), layout_));
  for (const std::string& mount : v1_mounts()) TRY(make_group(path(mount, "")));
  if (layout_.io.version == Controller::Version::v1) TRY(make_group(path(layout_.io.mount, "")));
  // These limit nothing; a sandbox has a group in them so that it sees one of its own.
  if (!layout_.cpuacct.empty()) TRY(make_group(path(layout_.cpuacct, "")));
  if (!layout_.cpuset.empty() && !open_cpuset(layout_.cpuset, path(layout_.cpuset, "")))
    layout_.cpuset.clear();
  return {};
}

// Two services with one group would end each other's sandboxes. The name alone keeps them apart, unless a
// state directory was copied together with what it says.
Result<void> CgroupTree::lock() {
  std::string group = path(layout_.v2, "");
  // Whoever may open a directory may lock it: nobody but us.
  if (::chmod(group.c_str(), 0700) < 0) return fail_errno("own cgroup " + group);
  lock_.reset();  // it may be on this very directory
  lock_ = TRY(open_at(AT_FDCWD, group, O_RDONLY | O_DIRECTORY));
  if (lock_soon(lock_.get())) return {};
  return fail(
      Code::already_exists,
      "another service uses the cgroup " + group +
          "; is the state directory a copy of another one? Then remove the file identity in the copy");
}

Result<void> CgroupTree::ensure_parents() {
  if (!exists()) return {};
  std::vector<std::string> mounts = v1_mounts();
  mounts.push_back(layout_.v2);
  bool whole = std::all_of(mounts.begin(), mounts.end(), [&](const std::string& mount) {
    return ::access(path(mount, "").c_str(), F_OK) == 0;
  });
  return whole ? Result<void>() : make_parents();
}

std::string CgroupTree::path(const std::string& mount, const std::string& id) const {
  if (!elsewhere_.empty()) {
    if (auto found = elsewhere_.find(id); found != elsewhere_.end()) return found->second;
  }
  return mount + "/" + name_ + (id.empty() ? "" : "/" + id);
}

std::vector<std::string> CgroupTree::v1_mounts() const {
  std::vector<std::string> mounts;
  for (const Controller* c : {&layout_.cpu, &layout_.memory, &layout_.pids}) {
    bool known = std::find(mounts.begin(), mounts.end(), c->mount) != mounts.end();
    if (c->version == Controller::Version::v1 && !known) mounts.push_back(c->mount);
  }
  return mounts;
}

std::vector<std::string> CgroupTree::v1_sometimes() const {
  std::vector<std::string> always = v1_mounts(), mounts;
  std::string io = layout_.io.version == Controller::Version::v1 ? layout_.io.mount : "";
  for (const std::string& mount : {io, layout_.cpuset, layout_.cpuacct}) {
    auto in = [&](const auto& list) { return std::find(list.begin(), list.end(), mount) != list.end(); };
    if (!mount.empty() && !in(always) && !in(mounts)) mounts.push_back(mount);
  }
  return mounts;
}

std::vector<std::pair<std::string, std::string>> CgroupTree::views(const std::string& id) const {
  if (!exists()) return {};
  using Version = Controller::Version;
  bool v1 = layout_.memory.version == Version::v1 || layout_.cpu.version == Version::v1;
  std::vector<std::pair<std::string, std::string>> views;
  if (!v1) {
    views.emplace_back("", path(layout_.v2, id));
    std::string quota = path(layout_.v2, id) + "/" + kWork + "/cpu.max";
    if (::access(quota.c_str(), F_OK) == 0) views.emplace_back("cpu.max", quota);
    return views;
  }
  auto of_cpu = [&](const std::string& mount) {
    std::string work = path(mount, id) + "/" + kWork;
    return mount == layout_.cpu.mount && ::access(work.c_str(), F_OK) == 0 ? work : path(mount, id);
  };
  if (layout_.memory.version == Version::v1) views.emplace_back("memory", path(layout_.memory.mount, id));
  if (layout_.cpu.version == Version::v1) views.emplace_back("cpu", of_cpu(layout_.cpu.mount));
  // Runtimes look for all four before they believe any.
  if (!layout_.cpuacct.empty()) views.emplace_back("cpuacct", of_cpu(layout_.cpuacct));
  if (!layout_.cpuset.empty()) views.emplace_back("cpuset", path(layout_.cpuset, id));
  return views;
}

Result<std::string> disk_of(dev_t device) {
  std::string numbers = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::string entry = "/sys/dev/block/" + numbers;
  if (major(device) == 0 || ::access(entry.c_str(), F_OK) < 0)
    return fail(Code::unsupported, "the file system is not on one disk");
  if (::access((entry + "/partition").c_str(), F_OK) < 0) return numbers;
  return std::string(trim(TRY(read_file(entry + "/../dev"))));
}

Result<CgroupHandles> CgroupTree::create(const std::string& id, const CgroupLimits& limits) {
  if (!exists()) return CgroupHandles{};
  auto missing = [](const char* what) {
    return fail(Code::unsupported, std::string("no cgroup controller here can limit ") + what);
  };
  if (limits.cpu_millis && layout_.cpu.version == Controller::Version::none) return missing("cpu");
  if (limits.memory_bytes && layout_.memory.version == Controller::Version::none) return missing("memory");
  if (limits.pids && layout_.pids.version == Controller::Version::none) return missing("pids");
  bool io = limits.io_read_bytes || limits.io_write_bytes;
  if (io && layout_.io.version == Controller::Version::none) return missing("io");
  if (limits.io_write_bytes && layout_.io.version != Controller::Version::v2) return missing("writes");

  auto made = create_once(id, limits);
  if (made || made.error().sys_errno != ENOENT) return made;
  spent_.drop();  // also what the attempt left: it has the name of the sandbox that is made now
  TRY(make_parents());
  return create_once(id, limits);
}

Result<CgroupHandles> CgroupTree::create_once(const std::string& id, const CgroupLimits& limits) {
  bool io = limits.io_read_bytes || limits.io_write_bytes;
  Cleanup undo;
  undo.push([&] { (void)remove(id); });
  std::string v2 = path(layout_.v2, id);
  if (::mkdir(v2.c_str(), 0755) < 0) return fail_errno("make cgroup " + v2);
  CgroupHandles handles;
  handles.v2_directory = TRY(open_at(AT_FDCWD, v2, O_RDONLY | O_DIRECTORY));
  using Version = Controller::Version;
  // Nobody sees the groups of such a sandbox, nor what they have counted.
  bool plain = !limits.cpu_millis && !limits.memory_bytes && !io;
  bool used = plain && spent_.give_to(id);
  for (const std::string& mount : v1_mounts()) {
    if (!used) TRY(make_group(path(mount, id)));
    // There it goes by way of `work`.
    if (limits.cpu_millis && layout_.cpu.version == Version::v1 && mount == layout_.cpu.mount) continue;
    handles.v1_procs.push_back(TRY(open_at(AT_FDCWD, path(mount, id) + "/cgroup.procs", O_WRONLY)));
  }
  if (used && !limits.pids && layout_.pids.version == Version::v1)
    TRY(write_file(path(layout_.pids.mount, id) + "/pids.max", "max"));

  auto join = [&](const std::string& mount) -> Result<void> {
    TRY(make_group(path(mount, id)));
    handles.v1_procs.push_back(TRY(open_at(AT_FDCWD, path(mount, id) + "/cgroup.procs", O_WRONLY)));
    return {};
  };
  // Only where there is a limit to be seen: a group more in every sandbox would cost each of them.
  if (limits.memory_bytes || limits.cpu_millis) {
    if (!layout_.cpuacct.empty() && layout_.cpuacct != layout_.cpu.mount) TRY(join(layout_.cpuacct));
    if (!layout_.cpuset.empty()) TRY(join(layout_.cpuset));
  }
  if (limits.memory_bytes) {
    bool v1 = layout_.memory.version == Version::v1;
    std::string group = path(layout_.memory.mount, id);
    TRY(apply(group, v1 ? "memory.limit_in_bytes" : "memory.max", *limits.memory_bytes));
    // Without this a limited sandbox would push its excess into swap.
    auto swap = v1 ? apply(group, "memory.memsw.limit_in_bytes", *limits.memory_bytes)
                   : apply(group, "memory.swap.max", 0);
    TRY(tolerate(
        std::move(swap), {Code::not_found},
        Weakening{"a limit on swapped memory",
                  "a kernel that does not account swap; memory itself is limited, and isolation says so"}));
    // Version 1 counts the buffers of sockets apart, those of UDP too; version 2 with everything else.
    if (v1) {
      TRY(tolerate(apply(group, "memory.kmem.tcp.limit_in_bytes", *limits.memory_bytes), {Code::not_found},
                   Weakening{"a limit on the buffers of sockets",
                             "a kernel that does not count them; memory itself is limited"}));
    }
  }
  if (limits.cpu_millis) TRY(limit_cpu(id, *limits.cpu_millis, handles));
  if (limits.pids) TRY(apply(path(layout_.pids.mount, id), "pids.max", *limits.pids));
  if (io) {
    std::string group = path(layout_.io.mount, id);
    bool v1 = layout_.io.version == Version::v1;
    if (v1) TRY(join(layout_.io.mount));
    for (const std::string& disk : limits.disks) {
      std::string line = disk;
      if (v1) {
        line += " " + std::to_string(*limits.io_read_bytes);
      } else {
        if (limits.io_read_bytes) line += " rbps=" + std::to_string(*limits.io_read_bytes);
        if (limits.io_write_bytes) line += " wbps=" + std::to_string(*limits.io_write_bytes);
      }
      TRY(in_context("limit the speed of disk " + disk,
                     write_file(group + (v1 ? "/blkio.throttle.read_bps_device" : "/io.max"), line)));
    }
  }
  undo.release();
  if (plain) plain_.insert(id);
  return handles;
}

Result<void> CgroupTree::limit_cpu(const std::string& id, int64_t millis, CgroupHandles& handles) const {
  bool v2 = layout_.cpu.version == Controller::Version::v2;
  std::string whole = path(layout_.cpu.mount, id), work = whole + "/" + kWork;
  TRY(make_group(work));
  if (v2) {
    // Before there are children of another type: only then may the group above keep processes.
    TRY(write_file(work + "/cgroup.type", "threaded"));
    TRY(write_file(whole + "/cgroup.subtree_control", "+cpu"));
  }
  int64_t quota = millis * kCpuPeriodMicros / 1000;
  // From above: in version 1 no group may have more than the one it is in.
  TRY(set_quota(whole, layout_.cpu.version, quota + kDaemonMicros));
  TRY(set_quota(work, layout_.cpu.version, quota));
  const char* file = v2 ? "/cgroup.threads" : "/tasks";
  handles.daemon = TRY(open_at(AT_FDCWD, whole + file, O_WRONLY));
  handles.work = TRY(open_at(AT_FDCWD, work + file, O_WRONLY));
  return {};
}

// Whether the groups of an ended sandbox are as good as new ones. What the kernel holds of its files and
// names is counted there until it is thrown away: a little of that does not matter, as there is no limit.
bool CgroupTree::is_usable(const std::string& id) const {
  constexpr int64_t kMostLeft = 16 << 20;
  if (!plain_.contains(id)) return false;
  if (layout_.memory.version != Controller::Version::v1) return true;
  auto left = read_file(path(layout_.memory.mount, id) + "/memory.usage_in_bytes");
  return left && parse_number<int64_t>(trim(*left)).value_or(INT64_MAX) <= kMostLeft &&
         oom_kills(id).value_or(1) == 0;
}

Result<void> CgroupTree::kill(const std::string& id) const {
  if (!exists()) return {};
  auto done = write_file(path(layout_.v2, id) + "/cgroup.kill", "1");
  if (!done && done.error().code == Code::not_found) return {};
  return done;
}

Result<void> CgroupTree::freeze(const std::string& id, bool frozen) const {
  if (!exists())
    return fail(Code::unsupported, "this service has no cgroup in which it could freeze a sandbox");
  return write_file(path(layout_.v2, id) + "/cgroup.freeze", frozen ? "1" : "0");
}

Result<bool> CgroupTree::is_to_freeze(const std::string& id) const {
  if (!exists()) return false;
  return trim(TRY(read_file(path(layout_.v2, id) + "/cgroup.freeze"))) == "1";
}

Result<bool> CgroupTree::frozen(int events) {
  char text[256];
  ssize_t n = ::pread(events, text, sizeof text, 0);
  if (n < 0 && errno == ENODEV) return fail(Code::not_found, "the cgroup is gone");
  if (n < 0) return fail_errno("read cgroup.events");
  return std::string_view(text, static_cast<size_t>(n)).find("frozen 1") != std::string_view::npos;
}

Result<Fd> CgroupTree::open_events(const std::string& id) const {
  return open_at(AT_FDCWD, path(layout_.v2, id) + "/cgroup.events", O_RDONLY);
}

Result<bool> CgroupTree::populated(const std::string& id) const {
  auto text = read_file(path(layout_.v2, id) + "/cgroup.events");
  if (!text) {
    if (text.error().code == Code::not_found) return false;
    return std::unexpected(std::move(text).error());
  }
  return text->find("populated 1") != text->npos;
}

Result<std::vector<pid_t>> CgroupTree::processes(const std::string& id) const {
  std::string text = TRY(read_file(path(layout_.v2, id) + "/cgroup.procs", 16 << 20));
  std::vector<pid_t> pids;
  for (std::string_view line : split(text, '\n')) {
    if (auto pid = parse_number<pid_t>(line)) pids.push_back(*pid);
  }
  return pids;
}

Result<int64_t> CgroupTree::oom_kills(const std::string& id) const {
  if (layout_.memory.version == Controller::Version::none) return 0;
  bool v1 = layout_.memory.version == Controller::Version::v1;
  std::string text =
      TRY(read_file(path(layout_.memory.mount, id) + (v1 ? "/memory.oom_control" : "/memory.events")));
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == "oom_kill") return parse_number<int64_t>(words[1]).value_or(0);
  }
  return 0;
}

Result<int64_t> CgroupTree::kernel_memory(const std::string& id) const {
  using Version = Controller::Version;
  if (layout_.memory.version == Version::none) return fail(Code::unsupported, "memory is not counted here");
  std::string group = path(layout_.memory.mount, id);
  if (layout_.memory.version == Version::v1)
    return parse_number<int64_t>(trim(TRY(read_file(group + "/memory.kmem.usage_in_bytes"))))
        .value_or(INT64_MAX);
  std::string text = TRY(read_file(group + "/memory.stat"));
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == "kernel") return parse_number<int64_t>(words[1]).value_or(INT64_MAX);
  }
  return fail(Code::unsupported, "the kernel's own memory is not counted here");
}

Result<void> CgroupTree::remove(const std::string& id) {
  if (!exists()) return {};
  std::string group = path(layout_.v2, id);
  // Fails only for what makes the next one fail, too.
  if (layout_.cpu.version == Controller::Version::v2) ::rmdir((group + "/" + kWork).c_str());
  if (::rmdir(group.c_str()) < 0 && errno != ENOENT) {
    if (errno == EBUSY) return fail(Code::exhausted, "cgroup " + group + " still has processes");
    return fail_errno("remove cgroup " + group);
  }
  spent_.add(id, is_usable(id));
  plain_.erase(id);
  return {};
}

void CgroupTree::leave() {
  if (!exists()) return;
  drop_spent();
  for (const std::string& mount : v1_mounts()) ::rmdir(path(mount, "").c_str());
  for (const std::string& mount : v1_sometimes()) ::rmdir(path(mount, "").c_str());
  ::rmdir(path(layout_.v2, "").c_str());
}

Result<std::vector<std::string>> CgroupTree::list() const {
  if (!exists()) return std::vector<std::string>{};
  std::string root = path(layout_.v2, "");
  DIR* dir = ::opendir(root.c_str());
  if (!dir) return fail_errno("list " + root);
  std::vector<std::string> ids;
  while (struct dirent* entry = ::readdir(dir)) {
    std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") ids.emplace_back(name);
  }
  ::closedir(dir);
  return ids;
}

}  // namespace osb::sys
