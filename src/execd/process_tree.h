#pragma once

// Ends a process with everything it has started, whatever process groups and sessions those have gone to.
//
// Whoever is below the root at that time is found by its parents. For that the root has to gather orphans
// (SpawnRequest): otherwise a process whose parent has ended is nobody's descendant. What a process below it
// has gathered itself (it may ask the kernel for the same) is found just so. Not found are those that another
// process started on request, a daemon of an earlier command for example.

#include <sys/types.h>

#include <functional>
#include <set>
#include <vector>

#include "execd/proc_stat.h"
#include "io/task.h"

namespace osb::execd {

struct ListedProcess {
  pid_t pid;
  ProcStat stat;
};

// Those below `root` that still run.
std::set<pid_t> descendants(const std::vector<ListedProcess>& processes, pid_t root);

// The root is stopped first and killed last, with its group: until then orphans come to it. Some rounds are
// needed as long as others fork meanwhile; a bomb that stays ahead of all of them loses its root and its
// group only. `root` gives the process as long as it has not been reaped, and something below 1 afterwards.
io::Task<> end_tree(std::function<pid_t()> root);

}  // namespace osb::execd
