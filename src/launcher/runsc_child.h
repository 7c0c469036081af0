#pragma once

// A sandbox whose kernel is runsc's. The new process is what it is for any other sandbox, the first of its
// pid namespace, in its control groups and its network; but instead of entering the root and becoming execd
// it starts runsc over that root and stays beside it, as a guard:
//
//   - it has the listeners of the sandbox. What it accepts it hands to execd inside, through a socket that
//     runsc gives execd as its standard input. So nothing of the host has a name inside, and nothing inside
//     can be named from the host;
//   - it ends when runsc ends, and whoever ends it ends everything: the kernel kills the rest of a pid
//     namespace with its first process. runsc leaves processes behind when a start fails; here it cannot.
//
// Runs in the new process; see child.h.

#include "launcher/child.h"

namespace osb::launcher {

struct RunscOrder {
  int executable = -1;
  int null = -1;  // the host's null device, for what runsc prints
  const char* config = nullptr;
  size_t config_bytes = 0;
  const char* const* arguments = nullptr;  // ends with null
};

// A root for runsc alone, entered: an empty memory file system with a procfs of the sandbox's pid namespace,
// the description, and execd. 0 or -errno. To be called in a mount namespace with nothing in it.
int make_stage(const ChildOrder& order);

// Once the sandbox's root is at its place in there. Reports through order.report as exec would: it closes
// when execd inside has said that it is there.
[[noreturn]] void guard_runsc(const ChildOrder& order);

}  // namespace osb::launcher
