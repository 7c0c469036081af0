#pragma once

// The cgroups of our sandboxes: one group per sandbox, named by its id, below one group of ours in every
// hierarchy used.
//
// Version 2 always carries identity: a sandbox is cloned into its v2 group, ended through cgroup.kill, and
// recognised by the group's name after a restart. Limits go to v2 where its controllers are available, else
// to the v1 hierarchies that have them ("hybrid" hosts). A limit that no hierarchy can enforce is an error,
// never ignored.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "sys/spent_groups.h"
#include "sys/weakening.h"

namespace osb::sys {

struct CgroupLimits {
  std::optional<int64_t> cpu_millis = {};
  std::optional<int64_t> memory_bytes = {};
  std::optional<int64_t> pids = {};
  // Bytes per second on each of `disks` ("major:minor" of whole disks).
  std::optional<int64_t> io_read_bytes = {};
  std::optional<int64_t> io_write_bytes = {};
  std::vector<std::string> disks = {};
};

// Where one controller's files live.
struct Controller {
  enum class Version { none, v1, v2 } version = Version::none;
  std::string mount;  // mount point of the hierarchy
};

// The hierarchies of this host, read from a mountinfo text.
struct CgroupLayout {
  std::string v2;  // mount point, empty when there is none
  Controller cpu, memory, pids;
  Controller io;  // of version 1: reads only, writes go to the disk later and on nobody's account
  // Version 1 hierarchies that only show something; mount points, empty when there are none.
  std::string cpuset, cpuacct;

  static CgroupLayout parse(std::string_view mountinfo, std::string_view v2_controllers);
  static Result<CgroupLayout> detect();
};

// The version 2 group of a process, from the text of its /proc/<pid>/cgroup; empty when there is none.
std::string v2_group(std::string_view text);

// What an ordinary user has of all this: the group of the calling process, when it was delegated to that user
// (cgroups(7), "Delegation"), as a layout of its own with the controllers that could be turned on there. The
// process moves into a group `leaf` below, because a group with processes cannot share out controllers.
// Code::unsupported, and why, when there is none.
Result<CgroupLayout> delegated_layout(const std::string& leaf);

// Moving a process into a v1 group waits for a grace period of the kernel, many milliseconds on an idle host,
// unless the kernel is told to favour such changes ("favordynmods" of cgroup2; forks get slightly dearer).
// Host-wide, until the next boot. Nothing happens where it is set already, unknown (before 6.0), or not
// needed because limits go through v2.
Result<void> favour_group_changes(const CgroupLayout& layout);
// The options of the cgroup2 superblock that such a call has to repeat, from a mountinfo text.
std::vector<std::string> cgroup2_options(std::string_view mountinfo);

// The whole disk that holds a file's device, as "major:minor". Code::unsupported when that is no disk.
Result<std::string> disk_of(dev_t device);

// What a process must be placed into: the v2 directory (for CLONE_INTO_CGROUP) and the cgroup.procs files of
// v1 groups.
//
// A sandbox whose cpu is limited has a second group for that, `work`, below its own: there the limit holds,
// and the group above has a little more, so that the daemon, which stays in it, runs while the work has used
// up its share. Both files take the thread that writes "0" (a single thread moves without the lock that
// stops every fork of the host); it is to look at its groups from `work`. In version 2 `work` is a threaded
// group: memory, the number of processes, killing and freezing remain matters of the whole.
struct CgroupHandles {
  Fd v2_directory;
  std::vector<Fd> v1_procs;
  Fd daemon, work;  // none: cpu is not limited
};

// Not thread-safe; belongs to the launcher.
class CgroupTree {
 public:
  // Ensures the parent group `name` in every hierarchy used.
  static Result<CgroupTree> open(CgroupLayout layout, std::string name);

  // No groups at all: nothing is limited, nothing can be frozen or found by them.
  static CgroupTree none(const Weakening&) { return CgroupTree({}, {}); }
  bool exists() const { return !layout_.v2.empty(); }

  const CgroupLayout& layout() const { return layout_; }
  // A v2 group that was made below another parent, by a service in another place.
  void find_elsewhere(const std::string& id, std::string directory) { elsewhere_[id] = std::move(directory); }
  // Our groups may vanish: whoever cleans up a host may remove empty ones. create() makes them again.
  Result<CgroupHandles> create(const std::string& id, const CgroupLimits& limits);
  // Makes the parent groups again if they are gone; an error says why no sandbox could have a group now.
  Result<void> ensure_parents();
  // Ends every process of the group, at once and without a race against forks.
  Result<void> kill(const std::string& id) const;
  // Asks for it; frozen() tells when every process has stopped.
  Result<void> freeze(const std::string& id, bool frozen) const;
  Result<bool> is_to_freeze(const std::string& id) const;
  // cgroup.events, to look at it again and again.
  Result<Fd> open_events(const std::string& id) const;
  static Result<bool> frozen(int events);
  Result<bool> populated(const std::string& id) const;  // false also when the group is gone
  Result<std::vector<pid_t>> processes(const std::string& id) const;
  // How often the kernel killed for memory in this group.
  Result<int64_t> oom_kills(const std::string& id) const;
  // Bytes that the kernel itself holds for the group: names, open files, page tables. Code::unsupported.
  Result<int64_t> kernel_memory(const std::string& id) const;
  // Removes the group; success when it is gone already. Code::exhausted while processes remain. What is left
  // of it in hierarchies of version 1 serves a later sandbox, or goes with drop_spent().
  Result<void> remove(const std::string& id);
  void drop_spent() { spent_.drop(); }
  Result<std::vector<std::string>> list() const;
  // What the sandbox may see of its own groups, read-only: name below /sys/fs/cgroup -> directory of the
  // host. When the first name is empty, that is the place itself, and the others are single files in it.
  std::vector<std::pair<std::string, std::string>> views(const std::string& id) const;
  // Takes our parent groups away when they are empty.
  void leave();

 private:
  CgroupTree(CgroupLayout layout, std::string name) : layout_(std::move(layout)), name_(std::move(name)) {}
  std::string path(const std::string& mount, const std::string& id) const;
  Result<void> make_parents();
  Result<void> lock();
  Result<CgroupHandles> create_once(const std::string& id, const CgroupLimits& limits);
  std::vector<std::string> v1_mounts() const;     // each mount that holds a v1 controller, once
  std::vector<std::string> v1_sometimes() const;  // more of them, with groups of some sandboxes only
  Result<void> limit_cpu(const std::string& id, int64_t millis, CgroupHandles& handles) const;
  bool is_usable(const std::string& id) const;

  CgroupLayout layout_;
  std::string name_;
  Fd lock_;  // on our version 2 group: two services never share one
  std::map<std::string, std::string> elsewhere_;
  SpentGroups spent_{{}, {}};
  std::set<std::string> plain_;  // sandboxes of which nothing but the number of processes is limited
};

}  // namespace osb::sys
