#pragma once

// What runsc is told about a sandbox: an OCI description of the root that the launcher has built, and its
// command line. Pure functions of a plan.
//
// Of the plan's steps the new process carries out those that make files appear (overlays, binds, volumes).
// What the kernel of a sandbox shows (proc, sysfs, devices) and what is memory is runsc's own, so it is said
// here instead; nothing of the host's kernel is mounted in that root.

#include <string>
#include <vector>

#include "launcher/plan.h"

namespace osb::launcher {

// Where things are for runsc, in a root that is made for it alone; see runsc_stage.h.
inline constexpr char kStageRoot[] = "/rootfs";
inline constexpr char kStageBoot[] = "/boot";
// Volumes are here by their number, not in the root: runsc finds a source by its path, and every path in
// there is the image's to shape. Where it belongs in the sandbox is for runsc to find, inside.
inline constexpr char kStageVolumes[] = "/volumes";
// Where the sandbox sees execd.
inline constexpr char kGuestBoot[] = "/opt/opensandbox/boot";

bool is_for_runsc(Step::Kind kind);  // whether the new process carries out such a step for runsc

std::string runsc_config(const Plan& plan, uint32_t first_id);
std::vector<std::string> runsc_arguments(const std::string& platform);

}  // namespace osb::launcher
