#pragma once

// What the launcher does otherwise when an ordinary user started the service. It then lives in a user
// namespace whose root is that user (runtime/native/rootless.h), and makes the same plans with the rights it
// has there.
//
// Without groups of the host a sandbox is known by its first process: the pid, the start time and the boot
// are noted in the sandbox's directory before that process is let go on, so that no sandbox lives without a
// note.

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "launcher/settings.h"
#include "sys/cgroup.h"
#include "sys/weakening.h"

namespace osb::launcher {

// A user may not shed groups where only a part of the ids is mapped (user_namespaces(7), "setgroups").
inline constexpr auto kKeptGroups =
    sys::Weakening{"an empty list of supplementary groups",
                   "the kernel does not let a user drop groups without newgidmap; the tier names it"};

// The groups of a service without root: below its own group, if that was delegated to its user; else none.
Result<sys::CgroupTree> rootless_cgroups(const std::string& name);
// Tells the tree where the group of a running sandbox is, if the service was in another place when it made
// it.
void find_group(sys::CgroupTree& cgroups, const std::string& id, pid_t first_process);
// For the server: "freeze", and the controllers that limit, with commas between.
std::string abilities(const sys::CgroupTree& cgroups);
// Of these limits, the ones that a controller here can hold.
sys::CgroupLimits enforceable(sys::CgroupLimits limits, const sys::CgroupLayout& layout);

// Held by the launcher while a new process waits for its note.
struct Gate {
  Fd wait, open;
  static Result<Gate> create();
  // Lets the process go on when it is on record; otherwise it ends together with this object.
  Result<void> pass(Result<void> recorded);
};

Result<void> record_process(const std::string& state_dir, const std::string& id, pid_t pid);
// A pidfd of the process on record. Code::not_found when there is none, or it is gone; other errors tell
// nothing.
Result<Fd> recorded_process(const std::string& state_dir, const std::string& id);

// These run between clone and exec: no allocation, errors are negative errno values.

int wait_until_recorded(int gate, int gate_writer);
// An empty file in the directory `dev`, covered with the host's device of that name. A device node that this
// user made itself would be refused by the kernel.
int bind_host_device(int dev, const char* name);

}  // namespace osb::launcher
