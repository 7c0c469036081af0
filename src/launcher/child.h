#pragma once

// The recipe: what happens between clone and the start of execd, in order. Everything here runs in the new
// process, which is single-threaded, allocates nothing, and reports the step that failed on a pipe.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launcher/disk.h"
#include "launcher/plan.h"

namespace osb::launcher {

// A step with its descriptors opened and its strings ready. Borrows from the Plan.
struct ReadyStep {
  const Step* step = nullptr;
  // What of it was mounted ahead: nothing, something that it is made of (a sysfs whose parts are to be
  // copied), or all of it, to be attached.
  enum class Made { nothing, source, whole } made = Made::nothing;
  // Detached mounts: what was made; else one per layer of an overlay, or the source of a bind.
  const int* sources = nullptr;
  bool layers_at_once = false;  // overlay: the kernel does not take them one by one
  const char* upper =
      nullptr;  // overlay: relative to the state directory, or to a disk that is attached nowhere
  const char* work = nullptr;
  // A directory of root's that the sandbox is to write, as the host sees it, or -1: the sandbox does not
  // start when a file in there has a privilege (sys/file_privileges.h).
  int looked_through = -1;
};

// Something of the host shown read-only: a detached mount, and where. Skipped when there is no such place.
struct LimitView {
  int source = -1;
  const char* target = nullptr;
};

struct ChildOrder {
  const ReadyStep* steps = nullptr;
  size_t step_count = 0;
  // A mount namespace with nothing in it, to start from. Without one (-1) the process starts from a copy of
  // the launcher's, whose mounts it may need while it mounts overlays itself.
  int nothing = -1;
  const char* state_dir = nullptr;
  DiskOrder disk;
  const LimitView* views = nullptr;  // for show_limits
  size_t view_count = 0;
  const char* const* cgroup_names = nullptr;  // directories of /sys/fs/cgroup; none: it is a view itself
  size_t cgroup_name_count = 0;
  const void* cpus = nullptr;  // cpu_set_t of cpu_bytes; null: all
  size_t cpu_bytes = 0;
  int64_t open_files = 0;  // of what execd starts; 0: as many as the launcher
  int64_t shm_bytes = 0;   // of /dev; 0: as it is made ahead
  uint32_t first_id = 0;   // what uid and gid 0 of the sandbox are outside
  int user_namespace = -1;
  int network_namespace = -1;
  const int* v1_procs = nullptr;  // cgroup.procs files of v1 groups
  size_t v1_count = 0;
  int daemon_group = -1, work_group = -1;  // as in sys::CgroupHandles
  // Rather than wait behind its sandbox's processes, execd goes before them. Only where the sandbox has a
  // group that keeps its share of the cpu apart from everybody else's.
  bool first_in_group = false;
  const void* seccomp = nullptr;
  size_t seccomp_bytes = 0;
  // Of a sandbox that writes as the host's root: a second program, and no capability for privileges of files.
  const void* modes_seccomp = nullptr;
  size_t modes_seccomp_bytes = 0;
  bool sized = false;  // its memory is limited: execd answers sysinfo(2), which would tell the host's
  int execd = -1;
  int api_listener = -1;
  int control_listener = -1;
  // Of a service without root. The process waits for a byte on `go` and ends when there is none: it must be
  // on record before it lives.
  bool rootless = false;
  int go = -1;
  int go_writer = -1;                        // its other end, closed first
  int64_t processes = 0;                     // of each of its users; 0: no limit
  const struct RunscOrder* runsc = nullptr;  // its kernel is not the host's; see runsc_child.h
  int report = -1;  // closes at exec: end of file without bytes means that execd runs
};

// What arrives on the report pipe when a step failed.
struct ChildFailure {
  uint32_t step = 0;  // index into the plan's steps, or that + kLookStage, or one of Stage + kFixedStage
  int32_t error = 0;
};
inline constexpr uint32_t kFixedStage = 0x10000, kLookStage = 0x20000;
enum class Stage : uint32_t {
  record,
  cgroup_v1,
  cgroup_namespace,
  mounts,
  network,
  disk,
  root,
  session_keyring,
  user_namespace,
  identity,
  no_new_privs,
  capabilities,
  limits,
  descriptors,
  seccomp,
  exec,
  stage,
  guest,
};
const char* to_string(Stage stage);

[[noreturn]] void run_child(const ChildOrder& order);

}  // namespace osb::launcher
