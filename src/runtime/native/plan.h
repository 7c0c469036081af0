#pragma once

// From what a client asked for to what the launcher executes: a pure function, shown whole by its golden
// test. The record of the sandbox comes with its claim.

#include "launcher/plan.h"
#include "runtime/native/images.h"
#include "runtime/runtime.h"

namespace osb::runtime {

// `state_dir`: where layers of snapshots are.
launcher::Plan make_plan(const SandboxSpec& spec, const ImageRoot& image, const Limits& limits,
                         const std::string& state_dir = "");

// The step that shows a volume; `owner` is whose it is.
launcher::Step volume_step(const std::string& owner, const Mount& mount);
// An owner as the name of a directory: itself, unless it could not be one.
std::string volume_owner(const std::string& owner);

}  // namespace osb::runtime
