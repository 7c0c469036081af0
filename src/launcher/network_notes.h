#pragma once

// What kind of network a sandbox has, as a later launcher finds it: a note in the sandbox's directory. Most
// have the open kind and no note, so that a create costs nothing for it.

#include "launcher/plan.h"

namespace osb::launcher {

// `directory` is the sandbox's. Before its first process is there.
Result<void> write_network_note(int directory, PlanNetwork::Kind kind);
// A note that cannot be read means no network.
PlanNetwork::Kind read_network_note(int directory);
// Before another sandbox gets the directory.
Result<void> remove_network_note(int directory);

}  // namespace osb::launcher
