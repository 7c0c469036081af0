#pragma once

// A plan's limits made ready for the new process: what it does by itself, and the strings it needs for that.

#include <string>
#include <vector>

#include "launcher/child.h"
#include "launcher/cpus.h"
#include "launcher/limit_views.h"
#include "launcher/plan.h"
#include "launcher/state_dir.h"
#include "sys/cgroup.h"

namespace osb::launcher {

class LimitOrder {
 public:
  // The caller releases the processors that were taken when the sandbox is not made.
  static Result<LimitOrder> make(const Plan& plan, uint32_t first_id, const std::vector<std::string>& layers,
                                 const StateDir& state, LimitViews& views, Cpus& cpus);
  // What the sandbox sees of its own groups, once it has some.
  Result<void> add_groups(const Plan& plan, const sys::CgroupTree& cgroups);

  const sys::CgroupLimits& cgroup() const { return cgroup_; }
  // The order borrows from this object.
  void fill(ChildOrder& order) const;

 private:
  Result<void> add_disks(const Plan& plan, const StateDir& state);
  void add_disk(const Plan& plan, uint32_t first_id, const std::vector<std::string>& layers,
                const StateDir& state);
  Result<void> add_views(const Plan& plan, LimitViews& views, const Cpus& cpus);
  void show(Fd source, std::string target);

  sys::CgroupLimits cgroup_;
  std::vector<std::pair<Fd, std::string>> shown_;
  std::vector<std::string> cgroup_names_, uppers_;
  std::string blank_, scratch_, directory_;
  cpu_set_t cpus_{};
  bool some_cpus_ = false, has_views_ = false;
  int64_t disk_bytes_ = 0, open_files_ = 0;
  uint32_t owner_ = 0;
  // Pointers into the above, taken in fill().
  mutable std::vector<LimitView> views_;
  mutable std::vector<const char*> names_, upper_names_;
};

}  // namespace osb::launcher
