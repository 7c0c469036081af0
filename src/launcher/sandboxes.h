#pragma once

// The sandboxes of this host, as the launcher sees them: starts them, ends them, finds them again.
//
// What is known about a sandbox is in the kernel and on disk (its cgroup, its directory); the tables here are
// bounded caches of descriptors.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/cleanup.h"
#include "launcher/child.h"
#include "launcher/cpus.h"
#include "launcher/id_ranges.h"
#include "launcher/limit_views.h"
#include "launcher/networks.h"
#include "launcher/plan.h"
#include "launcher/protocol.h"
#include "launcher/roots.h"
#include "launcher/state_dir.h"
#include "sys/cgroup.h"

namespace osb::launcher {

class Sandboxes {
 public:
  static Result<Sandboxes> open(const Settings& settings, StateDir& state, sys::CgroupTree cgroups);

  struct Starting {
    std::string id;
    Fd report;  // readable when the outcome is known
    Fd pidfd;
    Started started;
  };
  // Clones the sandbox. Its process goes on by itself; finish() tells how that went.
  Result<Starting> start(const Plan& plan);
  // To be called when `report` is readable: the pidfd for the server, or what failed (then nothing is left
  // behind, but the caller still has to end() it).
  Result<Fd> finish(Starting& starting, const Plan& plan);

  // Kills every process. The pidfd to wait for, or nothing when none runs.
  Result<Fd> kill(const std::string& id);
  // After kill, once no process is left.
  Result<void> remove(const std::string& id, bool keep_files);

  // Code::not_found only when that process is gone.
  Result<Fd> adopt(const std::string& id, pid_t pid, uint64_t start_ticks);
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
  Result<Fd> open_events(const std::string& id) const { return cgroups_.open_events(id); }
  static Result<bool> frozen(int events) { return sys::CgroupTree::frozen(events); }
  // Whether a freeze was asked for and not taken back, complete or not.
  Result<bool> is_to_freeze(const std::string& id) const;
  Result<std::vector<std::string>> list(const std::string& after) const;

  // Whether a sandbox could have its groups now.
  Result<void> health() { return cgroups_.ensure_parents(); }

  // At the end: takes empty groups of ours away.
  void leave();

  // Makes things ahead of need; true when there was something to make.
  bool prepare();
  // Gives up what was made ahead or kept for the next sandbox, but for a few things that cost nothing to
  // keep.
  void drop_spares();

 private:
  Sandboxes(const Settings& settings, StateDir& state, sys::CgroupTree cgroups, LimitViews views)
      : settings_(&settings),
        state_(&state),
        cgroups_(std::move(cgroups)),
        views_(std::move(views)),
        roots_(settings, state) {}

  // Where a sandbox will live.
  struct Place {
    uint32_t range = 0;
    std::optional<Root> root;  // none: its process mounts the overlays
    Layers layers;
  };
  // What a running sandbox uses and may leave as it found it.
  struct Reusable {
    Root root;
    Network network;  // without a namespace: not for others
  };

  Result<void> leave_strangers_alone();
  void remember(const std::string& id, Fd init);
  Result<int> init_of(const std::string& id);
  Result<int> user_namespace(uint32_t range);
  Result<Place> make_place(const Plan& plan, Cleanup& undo);
  Result<void> make_spare(const Plan& plan);
  bool prepare_root();
  Result<void> keep(Root root);
  bool keep_as_spare(const std::string& id, Root root);
  Result<void> drop_oldest_root();
  bool is_untouched(const std::string& id, const Reusable& used) const;
  Result<Fd> first_process(const std::string& id) const;
  static Result<void> check_lives(const std::string& id, pid_t pid, uint64_t start_ticks);

  const Settings* settings_;
  StateDir* state_;
  sys::CgroupTree cgroups_;
  LimitViews views_;
  Cpus cpus_ = Cpus::of_this_process();
  Networks networks_;
  Roots roots_;
  Fd nothing_;                       // a mount namespace to start from; see ChildOrder
  Plan model_;                       // the last plan whose root could be made ahead; without steps: none
  Fd fresh_user_namespace_;          // rootless: of the latest sandbox
  std::map<std::string, Fd> inits_;  // pidfds
  IdRanges ranges_ = IdRanges::none();
  std::map<uint32_t, Fd> user_namespaces_;  // by first id; kept for the next sandbox of that range
  std::map<std::string, Reusable> reusable_;
};

}  // namespace osb::launcher
