#pragma once

// `osb doctor`: what this machine can do for sandboxes, one line per ability, and a verdict.

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/machine_probe.h"
#include "runtime/capabilities.h"

namespace osb::cli {

// The exit status: 0 when sandboxes can run here.
int examine_machine(const DoctorOptions& options);

struct Diagnosis {
  std::string text;
  bool can_run = false;
};
// `as_root` says whether what failed for want of permission was really tried.
Diagnosis diagnose(const std::vector<Finding>& findings, bool as_root);
// A line for each thing that a request may ask for: what the runtime of the server answers.
std::string describe(const runtime::Capabilities& capabilities);

}  // namespace osb::cli
