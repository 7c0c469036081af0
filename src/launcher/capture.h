#pragma once

// Captures what a sandbox has changed, as a staged snapshot (snapshot_store.h). In a process of its own,
// which prepares itself first; from halfway on the sandbox must be frozen.

#include <string>

#include "base/error.h"
#include "launcher/forked.h"
#include "launcher/snapshot_store.h"
#include "launcher/state_dir.h"

namespace osb::launcher {

Result<void> capture_sandbox(const StateDir& state, const SnapshotStore& snapshots, const std::string& id,
                             const std::string& snapshot, const Halfway& halfway);

}  // namespace osb::launcher
