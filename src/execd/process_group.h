#pragma once

// Signals to a whole process group, never to a stranger. While the leader has not been reaped the number is
// safe by itself. After that the group may live on in its other members, and its number is safe only as long
// as it does: a pidfd of the leader names the group for good (Linux 6.9); before that, only a group with a
// member older than the leader's end is taken for the same one.

#include <sys/types.h>

#include "base/fd.h"

namespace osb::execd {

class ProcessGroup {
 public:
  // The leader must be an unreaped child.
  explicit ProcessGroup(pid_t leader);
  // From then on the leader's pid is not used by itself any more.
  void leader_reaped();
  // False when no member is left. Signal 0 only asks.
  bool signal(int number);

 private:
  bool same_group_lives() const;

  pid_t pgid_;
  Fd pidfd_;
  bool reaped_ = false;
  uint64_t reaped_at_ticks_ = 0;
};

}  // namespace osb::execd
