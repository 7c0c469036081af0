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
#include "sys/cgroup_layout.h"
#include "sys/cgroup_limits.h"
#include "sys/spent_groups.h"
#include "sys/weakening.h"

namespace osb::sys {

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
  bool drop_spent() { return spent_.drop(); }  // false while the kernel holds one
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
  Result<void> prefer_service() const;
  std::string service_leaf() const { return name_ + "-service"; }
  Result<void> lock();
  Result<CgroupHandles> create_once(const std::string& id, const CgroupLimits& limits);
  std::vector<std::string> v1_mounts() const;     // each mount that holds a v1 controller, once
  std::vector<std::string> v1_sometimes() const;  // more of them, with groups of some sandboxes only
  Result<CgroupHandles> make_groups(const std::string& id, const CgroupLimits& limits);
  Result<void> apply(const std::string& id, const CgroupLimits& limits, CgroupHandles& handles) const;
  bool is_usable(const std::string& id) const;

  CgroupLayout layout_;
  std::string name_;
  Fd lock_;  // on our version 2 group: two services never share one
  std::map<std::string, std::string> elsewhere_;
  SpentGroups spent_{{}, {}};
  std::set<std::string> plain_;  // sandboxes of which nothing but the number of processes is limited
};

}  // namespace osb::sys
