#pragma once

// The sandboxes of this host, as the launcher sees them: starts them, ends them, finds them again.
//
// What is known about a sandbox is in the kernel and on disk (its cgroup, its directory); the tables here are
// bounded caches of descriptors.

#include <string>
#include <vector>

#include "launcher/cpus.h"
#include "launcher/first_processes.h"
#include "launcher/limit_views.h"
#include "launcher/plan.h"
#include "launcher/protocol.h"
#include "launcher/spares.h"
#include "launcher/starting.h"
#include "launcher/state_dir.h"
#include "sys/cgroup.h"

namespace osb::launcher {

class Sandboxes {
 public:
  static Result<Sandboxes> open(const Settings& settings, StateDir& state, sys::CgroupTree& cgroups);

  // Clones the sandbox. Its process goes on by itself; finish() tells how that went.
  Result<Starting> start(const Plan& plan);
  // To be called when `report` is readable: the pidfd for the server, or what failed (then nothing is left
  // behind, but the caller still has to end() it).
  static Result<Fd> finish(Starting& starting, const Plan& plan) { return finish_start(starting, plan); }

  // Kills every process. The pidfd to wait for, or nothing when none runs.
  Result<Fd> kill(const std::string& id);
  // After kill, once no process is left.
  Result<void> remove(const std::string& id, bool keep_files);

  // Code::not_found only when that process is gone.
  Result<Fd> adopt(const std::string& id, pid_t pid, uint64_t start_ticks) {
    return first_.adopt(id, pid, start_ticks);
  }
  struct Recalled {
    std::string record;
    Started first_process;  // zeros when there is none
  };
  // What is known about a sandbox that nobody else knows about.
  Result<Recalled> recall(const std::string& id);
  Result<void> keep_record(const std::string& id, std::string_view record) const;
  Result<std::vector<Fd>> sockets(const std::string& id, size_t count);
  Result<int64_t> oom_kills(const std::string& id) const;
  // Stops or continues every process. A freeze is complete when frozen() says so.
  Result<void> freeze(const std::string& id, bool frozen) const;
  Result<Fd> open_events(const std::string& id) const { return cgroups_->open_events(id); }
  static Result<bool> frozen(int events) { return sys::CgroupTree::frozen(events); }
  // Whether a freeze was asked for and not taken back, complete or not.
  Result<bool> is_to_freeze(const std::string& id) const;
  Result<std::vector<std::string>> list(const std::string& after) const;

  // Whether a sandbox could have its groups now.
  Result<void> health() { return cgroups_->ensure_parents(); }

  // At the end: takes empty groups of ours away.
  void leave();

  // Makes things ahead of need; true when there was something to make.
  bool prepare() { return spares_.prepare(); }
  // Gives up what was made ahead or kept for the next sandbox, but for a few things that cost nothing to
  // keep.
  void drop_spares();

 private:
  Sandboxes(const Settings& settings, StateDir& state, sys::CgroupTree& cgroups, LimitViews views,
            Spares spares)
      : settings_(&settings),
        state_(&state),
        cgroups_(&cgroups),
        views_(std::move(views)),
        spares_(std::move(spares)),
        first_(settings, cgroups) {}

  Result<void> leave_strangers_alone();

  const Settings* settings_;
  StateDir* state_;
  sys::CgroupTree* cgroups_;
  LimitViews views_;
  Cpus cpus_ = Cpus::of_this_process();
  Spares spares_;
  FirstProcesses first_;
};

}  // namespace osb::launcher
