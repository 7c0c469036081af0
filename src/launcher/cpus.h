#pragma once

// Which processors a sandbox with a cpu limit may run on: as many as its share rounded up, so that programs
// which count processors (nproc, runtimes with a thread each) size themselves by the sandbox. The quota, not
// this, is what limits it. The least used ones are taken, so that limited sandboxes spread over the host.

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace osb::launcher {

// Not thread-safe; belongs to the launcher.
class Cpus {
 public:
  explicit Cpus(std::vector<int> usable) : usable_(std::move(usable)) {}
  static Cpus of_this_process();

  int count_for(int64_t cpu_millis) const;
  // The processors for a sandbox; empty when it gets all.
  std::vector<int> take(const std::string& id, int count);
  // What an earlier launcher chose, read from the sandbox's first process.
  void adopt(const std::string& id, pid_t first_process);
  void release(const std::string& id);

 private:
  std::vector<int> usable_;
  std::map<int, int> users_;  // by processor
  std::map<std::string, std::vector<int>> taken_;
};

cpu_set_t to_set(const std::vector<int>& cpus);

}  // namespace osb::launcher
