#pragma once

// From a plan to the first process of a sandbox: everything is made and opened here, then the process is
// cloned and follows the recipe of child.h by itself.

#include <string>

#include "base/fd.h"
#include "launcher/cpus.h"
#include "launcher/limit_views.h"
#include "launcher/plan.h"
#include "launcher/spares.h"
#include "launcher/started.h"
#include "launcher/volume_store.h"
#include "sys/cgroup.h"

namespace osb::launcher {

// What sandboxes are made with. Borrows everything.
struct Workshop {
  const Settings& settings;
  StateDir& state;
  sys::CgroupTree& cgroups;
  LimitViews& views;
  Cpus& cpus;
  Spares& spares;
  const VolumeStore& volumes;
};

// Clones the sandbox; nothing is left behind when that fails. Its process goes on by itself; finish_start()
// tells how that went.
Result<Starting> start_process(const Plan& plan, const Workshop& with);

// To be called when `report` is readable: the pidfd for the server, or what failed (then the sandbox still
// has to be ended).
Result<Fd> finish_start(Starting& starting, const Plan& plan);

}  // namespace osb::launcher
