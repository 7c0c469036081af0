#pragma once

// What the unprivileged server asks the launcher to build: plain values, executed top to bottom. A pure
// function made it (runtime/native/plan.cc), a golden test shows it, and the launcher refuses the parts that
// are not allowed.
//
// Not fields of a plan, because they always happen: fresh namespaces, the id range (the launcher chooses it),
// the user namespace, no_new_privs, the seccomp program, the capability drop, closed descriptors.
//
// The order of steps is fixed (checks.cc): the overlay of /; further overlays, binds and scratch; the system
// steps (system_steps.h), so that nothing comes to lie over them; then limits, host name and seals.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/bytes.h"
#include "sys/cgroup.h"

namespace osb::launcher {

struct Step {
  enum class Kind : uint8_t {
    overlay,      // `target` <- `lowers` (topmost first) with a fresh upper named `name`
    bind,         // `target` <- `source`, with `access` and `ids`
    proc,         // a fresh procfs at `target`
    sysfs,        // at `target`, read-only, what of a sysfs programs use: processors, memory, its network
    devices,      // a small device directory at `target`: null zero full random urandom tty pts shm
    mask,         // `target` becomes empty and unreadable; skipped when it does not exist
    read_only,    // `target` becomes read-only; skipped when it does not exist
    hostname,     // the sandbox's host name is `name`
    scratch,      // an empty memory file system at `target`, writable by everybody
    seal,         // the overlay at `target` becomes read-only; the last of its steps
    show_limits,  // programs see a machine of the sandbox's size: /proc/meminfo, /sys/fs/cgroup, ...
    volume,       // `target` <- a named volume, with `access`; `source` is owner/name, or a path below that
  };
  Kind kind = Kind::overlay;
  std::string target;
  std::string source;
  std::string name;
  std::vector<std::string> lowers;

  // Of a bind and a volume.
  enum class Access : uint8_t { read_only, read_write } access = Access::read_only;
  // Of a bind.
  enum class Ids : uint8_t {
    sandbox,  // ids 0 to 65535 of the files are those of the sandbox, whatever its range; read-only, and from
              // the operator's sources
    owner,    // the sandbox's root is who owns the source, one of the operator's shared paths (volume_ids.h)
  } ids = Ids::sandbox;

  bool operator==(const Step&) const = default;
};

// What a sandbox reaches beyond itself.
struct PlanNetwork {
  enum class Kind : uint8_t {
    none,    // nothing but a loopback device of its own
    policy,  // what the egress process lets through, by a policy that it keeps
    open,    // the same by its default; it hears of the sandbox when something first leaves it
  } kind = Kind::none;
  std::string policy;  // the name of one that the launcher would know; there are none yet
};

struct Plan {
  std::string id;
  std::string image;  // digest of the imported image that the layers belong to; "" for others
  sys::CgroupLimits limits;
  std::optional<int64_t>
      disk_bytes;  // all that the sandbox writes; overlays lie on a file system of this size
  std::optional<int64_t> open_files;  // per process
  std::optional<int64_t> shm_bytes;   // of /dev with /dev/shm; absent: kStandardShm
  PlanNetwork network;
  enum class Kernel : uint8_t {
    host,
    runsc,  // its programs run on one of their own, in user space; see runsc_child.h
  } kernel = Kernel::host;
  std::vector<Step> steps;
  std::string record;  // kept for the server, see records.h; "" for none
};

std::string_view to_string(Step::Kind kind);
// One line per step, for golden tests, logs and error messages.
std::string to_text(const Step& step);
std::string to_text(const Plan& plan);

void write_step(const Step& step, ByteWriter& out);
Step read_step(ByteReader& in);
void write_plan(const Plan& plan, ByteWriter& out);
// What is wrong makes the reader fail.
Plan read_plan(ByteReader& in);

}  // namespace osb::launcher
