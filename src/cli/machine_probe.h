#pragma once

// What this machine's kernel really does for sandboxes. Every ability is tried, not guessed from a version,
// and each in a forked child: whatever a probe changes (namespaces, filters, limits) or breaks ends with that
// child. Needs a single-threaded caller.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace osb::cli {

enum class Need {
  required,  // without it no sandbox can run
  wanted,    // without it something is refused or slower
  note,      // for information
};

struct Machine {
  std::string state_dir;  // where the server keeps its files
  std::string
      work_dir;  // state_dir, or its nearest ancestor that exists: the file system that uppers will live on
};
Machine machine_at(std::string state_dir);

// One thing to try. On success `run` says what it saw, in a few words.
struct Probe {
  const char* name;
  Need need;
  Result<std::string> (*run)(const Machine&);
  const char* if_missing;  // what follows from it
  const char* remedy;
};

struct Finding {
  const Probe* probe = nullptr;
  Result<std::string> result;
};

// In the order in which the sandbox set-up meets them.
std::span<const Probe> host_probes();
std::span<const Probe> mount_probes();
std::span<const Probe> process_probes();
std::span<const Probe> cgroup_probes();
std::span<const Probe> network_probes();
std::span<const Probe> rootless_probes();

// What makes up for missing root; see diagnose().
inline constexpr char kRootlessProbe[] = "service without root";

std::vector<Finding> probe_machine(const Machine& machine);
// The child must answer within ten seconds; one that crashes is a failed probe, not a failed caller.
Result<std::string> run_in_child(const std::function<Result<std::string>()>& probe);

// A user namespace that maps 0..65535 to unused host ids, as sandboxes have; needs root.
inline constexpr unsigned kProbeFirstId = 100000;

}  // namespace osb::cli
