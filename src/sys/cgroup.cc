#include "sys/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/cleanup.h"
#include "base/strings.h"
#include "sys/cgroup_delegation.h"
#include "sys/directory.h"
#include "sys/file_lock.h"

namespace osb::sys {
namespace {

using Version = Controller::Version;

// A v1 group of processors takes no process before it has some; its children get the same ones.
Result<void> open_cpuset(const std::string& mount, const std::string& group) {
  TRY(make_group(group));
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"})
    TRY(write_file(group + file, trim(TRY(read_file(mount + file)))));
  return write_file(group + "/cgroup.clone_children", "1");
}

}  // namespace

Result<CgroupTree> CgroupTree::open(CgroupLayout layout, std::string name) {
  if (layout.v2.empty()) {
    return fail(
        Code::unsupported,
        "no cgroup2 file system is mounted; mount one (mount -t cgroup2 none /sys/fs/cgroup/unified)");
  }
  CgroupTree tree(std::move(layout), std::move(name));
  if (shares_out(tree.layout_)) TRY(make_room(tree.layout_.v2, tree.service_leaf()));
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

// With version 1 the service goes before its sandboxes by nice. Version 2 compares groups first: where the
// service has one beside that of all sandboxes, it weighs three times as much.
Result<void> CgroupTree::prefer_service() const {
  if (layout_.cpu.version != Version::v2) return {};
  std::string weight = layout_.v2 + "/" + service_leaf() + "/cpu.weight";
  if (::access(weight.c_str(), F_OK) < 0) return {};
  return in_context("weigh the service's own group", write_file(weight, "300"));
}

Result<void> CgroupTree::make_parents() {
  TRY(delegate(layout_.v2, layout_));
  TRY(prefer_service());
  TRY(make_group(path(layout_.v2, "")));
  TRY(lock());
  TRY(delegate(path(layout_.v2, ""), layout_));
  for (const std::string& mount : v1_mounts()) TRY(make_group(path(mount, "")));
  if (layout_.io.version == Version::v1) TRY(make_group(path(layout_.io.mount, "")));
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
    if (c->version == Version::v1 && !known) mounts.push_back(c->mount);
  }
  return mounts;
}

std::vector<std::string> CgroupTree::v1_sometimes() const {
  std::vector<std::string> always = v1_mounts(), mounts;
  std::string io = layout_.io.version == Version::v1 ? layout_.io.mount : "";
  for (const std::string& mount : {io, layout_.cpuset, layout_.cpuacct}) {
    auto in = [&](const auto& list) { return std::find(list.begin(), list.end(), mount) != list.end(); };
    if (!mount.empty() && !in(always) && !in(mounts)) mounts.push_back(mount);
  }
  return mounts;
}

Result<CgroupHandles> CgroupTree::create(const std::string& id, const CgroupLimits& limits) {
  if (!exists()) return CgroupHandles{};
  TRY(check_enforceable(limits, layout_));
  auto made = create_once(id, limits);
  // Somebody may have removed our parent groups while they were empty.
  if (made || made.error().sys_errno != ENOENT) return made;
  spent_.drop();  // also what the attempt left: it has the name of the sandbox that is made now
  TRY(make_parents());
  return create_once(id, limits);
}

Result<CgroupHandles> CgroupTree::create_once(const std::string& id, const CgroupLimits& limits) {
  Cleanup undo;
  undo.push([&] { (void)remove(id); });
  CgroupHandles handles = TRY(make_groups(id, limits));
  TRY(apply(id, limits, handles));
  undo.release();
  if (limits.is_plain()) plain_.insert(id);
  return handles;
}

Result<CgroupHandles> CgroupTree::make_groups(const std::string& id, const CgroupLimits& limits) {
  std::string v2 = path(layout_.v2, id);
  if (::mkdir(v2.c_str(), 0755) < 0) return fail_errno("make cgroup " + v2);
  CgroupHandles handles;
  handles.v2_directory = TRY(open_at(AT_FDCWD, v2, O_RDONLY | O_DIRECTORY));
  bool used = limits.is_plain() && spent_.give_to(id);
  for (const std::string& mount : v1_mounts()) {
    if (!used) TRY(make_group(path(mount, id)));
    // There it goes by way of `work`.
    if (limits.cpu_millis && layout_.cpu.version == Version::v1 && mount == layout_.cpu.mount) continue;
    handles.v1_procs.push_back(TRY(open_at(AT_FDCWD, path(mount, id) + "/cgroup.procs", O_WRONLY)));
  }
  if (used && !limits.pids && layout_.pids.version == Version::v1)
    TRY(write_file(path(layout_.pids.mount, id) + "/pids.max", "max"));
  return handles;
}

Result<void> CgroupTree::apply(const std::string& id, const CgroupLimits& limits,
                               CgroupHandles& handles) const {
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
  if (limits.memory_bytes)
    TRY(limit_memory(path(layout_.memory.mount, id), layout_.memory.version, *limits.memory_bytes));
  if (limits.cpu_millis) {
    CpuGroups groups = TRY(limit_cpu(path(layout_.cpu.mount, id), layout_.cpu.version, *limits.cpu_millis));
    handles.daemon = std::move(groups.daemon);
    handles.work = std::move(groups.work);
  }
  if (limits.pids) TRY(limit_processes(path(layout_.pids.mount, id), *limits.pids));
  if (!limits.limits_io()) return {};
  if (layout_.io.version == Version::v1) TRY(join(layout_.io.mount));
  return limit_io(path(layout_.io.mount, id), layout_.io.version, limits);
}

// Whether the groups of an ended sandbox are as good as new ones. What the kernel holds of its files and
// names is counted there until it is thrown away: a little of that does not matter, as there is no limit.
bool CgroupTree::is_usable(const std::string& id) const {
  constexpr int64_t kMostLeft = 16 << 20;
  if (!plain_.contains(id)) return false;
  if (layout_.memory.version != Version::v1) return true;
  auto left = read_file(path(layout_.memory.mount, id) + "/memory.usage_in_bytes");
  return left && parse_number<int64_t>(trim(*left)).value_or(INT64_MAX) <= kMostLeft &&
         oom_kills(id).value_or(1) == 0;
}

Result<void> CgroupTree::remove(const std::string& id) {
  if (!exists()) return {};
  std::string group = path(layout_.v2, id);
  // Fails only for what makes the next one fail, too.
  if (layout_.cpu.version == Version::v2) ::rmdir((group + "/" + kWork).c_str());
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
  return directories_in(path(layout_.v2, ""));
}

}  // namespace osb::sys
