#pragma once

// The least that stopping a sandbox takes: one write to its cgroup, and waiting for the kernel to say that
// every process has stopped.

#include <sys/types.h>

namespace floorbench {

class Freezer {
 public:
  // Puts the process into a cgroup (v2) of its own, at the root of the hierarchy.
  explicit Freezer(pid_t process);
  // Thaws, moves the process back and removes the cgroup.
  ~Freezer();
  Freezer(const Freezer&) = delete;

  void freeze() { set('1'); }
  void thaw() { set('0'); }

 private:
  void set(char wanted);
  pid_t process_;
  int root_ = -1, group_ = -1, freeze_ = -1, events_ = -1;
  char name_[32];
};

}  // namespace floorbench
