#pragma once

// The sandboxes of this host, as the launcher sees them: starts them, ends them, finds them again.
//
// What is known about a sandbox is in the kernel and on disk (its cgroup, its directory); the tables here are
// bounded caches of descriptors.

#include <set>
#include <string>
#include <vector>

#include "launcher/containers.h"
#include "launcher/cpus.h"
#include "launcher/first_processes.h"
#include "launcher/image_keepers.h"
#include "launcher/limit_views.h"
#include "launcher/plan.h"
#include "launcher/sandbox_table.h"
#include "launcher/snapshot_store.h"
#include "launcher/spares.h"
#include "launcher/starting.h"
#include "launcher/state_dir.h"
#include "launcher/volume_store.h"
#include "sys/cgroup.h"

namespace osb::launcher {

class Sandboxes final : public SandboxTable {
 public:
  static Result<Sandboxes> open(const Settings& settings, StateDir& state, sys::CgroupTree& cgroups);

  Result<Starting> start(const Plan& plan) override;
  Result<Fd> finish(Starting& starting, const Plan& plan) override { return finish_start(starting, plan); }
  Result<Fd> kill(const std::string& id) override;
  Result<void> remove(const std::string& id, bool keep_files) override;
  Result<Fd> adopt(const std::string& id, const Started& first_process) override;
  Result<Recalled> recall(const std::string& id) override;
  Result<void> keep_record(const std::string& id, std::string_view record) override;
  Result<std::vector<Fd>> sockets(const std::string& id, size_t count) override;
  Result<Listeners> listeners(const std::string& id) override;
  int callers() override { return settings_->egress.empty() ? -1 : spares_.outlets().fd(); }
  std::optional<Listeners> next_caller() override;
  void nobody_listens() override;
  Result<void> add_container(const std::string& id, const std::string& container, int64_t pid) override {
    return containers_.add(id, container, pid, spares_.home_network());
  }
  Result<Fd> connect_engine() override;
  Result<int64_t> oom_kills(const std::string& id) override;
  Result<void> freeze(const std::string& id, bool frozen) override;
  Result<Fd> open_events(const std::string& id) override { return cgroups_->open_events(id); }
  Result<bool> frozen(int events) override { return sys::CgroupTree::frozen(events); }
  Result<bool> is_to_freeze(const std::string& id) override;
  Result<std::vector<std::string>> list(const std::string& after, size_t most) override;
  Result<void> health() override {
    return settings_->engine_only ? Result<void>() : cgroups_->ensure_parents();
  }
  Result<Fd> start_image_keeper() override { return image_keepers_.start(); }
  Result<Forked> capture(const std::string& id, const std::string& snapshot) override;
  Result<Forked> keep_snapshot(const std::string& id, Lasting lasting) override;
  Result<void> drop_snapshot(const std::string& id) override;
  Result<FoundSnapshot> find_snapshot(const std::string& id, Lasting lasting) override;
  Result<std::vector<std::string>> list_snapshots(const std::string& after, size_t most) override;
  Result<Fd> diff(const std::string& id) override;
  Result<Ensured> ensure_volume(const VolumeRequest& request) override;
  Result<std::vector<VolumesAnswer::Volume>> list_volumes(const std::string& owner, const std::string& after,
                                                          size_t most) override;
  Result<void> drop_volume(const VolumePath& path) override { return volumes_.drop(path); }
  bool prepare() override { return !settings_->engine_only && spares_.prepare(); }
  bool drop_spares() override;
  bool trash_is_empty() override;
  [[noreturn]] void run_trash_worker() override;

  // At the end: takes empty groups of ours away.
  void leave();

 private:
  Sandboxes(const Settings& settings, StateDir& state, sys::CgroupTree& cgroups, LimitViews views,
            Spares spares, VolumeStore volumes, Containers containers)
      : settings_(&settings),
        state_(&state),
        cgroups_(&cgroups),
        views_(std::move(views)),
        spares_(std::move(spares)),
        first_(settings, cgroups),
        image_keepers_(settings),
        volumes_(std::move(volumes)),
        containers_(std::move(containers)) {}

  Result<void> leave_strangers_alone();
  Result<const SnapshotStore*> snapshots() const;
  Result<PlanNetwork::Kind> network_of(const std::string& id) const;  // Code::unsupported: none
  Result<Listeners> give_listeners(const std::string& id, sys::Outlet outlet);
  void reopen_outlet(const std::string& id);

  const Settings* settings_;
  StateDir* state_;
  sys::CgroupTree* cgroups_;
  LimitViews views_;
  Cpus cpus_ = Cpus::of_this_process();
  Spares spares_;
  FirstProcesses first_;
  ImageKeepers image_keepers_;
  VolumeStore volumes_;
  Containers containers_;
  std::optional<SnapshotStore> snapshots_;  // none: a service without root
  std::set<std::string> heard_;             // whose outlets the egress process has
  // Something that may have been the last to use a layer went while a trash worker was under way, which has
  // looked at the layers before.
  bool sweep_is_due_ = false;
};

}  // namespace osb::launcher
