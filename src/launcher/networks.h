#pragma once

// Network namespaces for sandboxes: made ahead of need, and used again when nothing was ever sent in one.
// They come with an outlet (sys/outlet.h), which is used again only when it never left this process: whoever
// held the sockets of the sandbox before would otherwise hear the next one. New sockets on the same port take
// their time: every process that is being started has copies of the old ones for a moment.
//
// A sandbox cannot change its network (the namespace belongs to the host's user namespace), so what could
// remain of it is what its packets left behind. The kernel counts those.

#include <string>
#include <vector>

#include "base/fd.h"
#include "sys/namespaces.h"
#include "sys/outlet.h"

namespace osb::launcher {

struct Network {
  Fd space;
  // What shows its devices, mounted ahead: the kernel looks at all others to mount one. May be none.
  Fd sysfs;
  // What a sandbox sees of that (system_trees.h), for one sandbox. May be none.
  Fd tree;
  // Where what leaves it arrives; empty: given away, or this kernel cannot.
  sys::Outlet outlet;
  bool has_rules = false;  // that lead to it
};

class Networks {
 public:
  // Whether the launcher may come back from a namespace that it entered. Without root it may not: children
  // make what is needed, and nothing is used again.
  enum class Back { yes, no };
  // Whether somebody will take what leaves them.
  enum class Outlets { yes, no };
  static Result<Networks> open(Back back, Outlets outlets);

  int home() const { return home_.get(); }  // -1 without a way back

  Result<Network> take();
  // Makes one more, or completes one; false when nothing is left to do, or when it failed.
  bool prepare();
  // After the last process of its sandbox is gone. Closes it unless it is as good as new.
  void give_back(Network network);
  // Back to the few that prepare() makes.
  void drop_spares();

 private:
  Result<Network> make();
  bool complete();  // adds a tree to a spare without; false when enough have one, or when it failed
  bool add_outlet(Network& network, sys::OutletFor what);

  Fd home_;
  std::string silence_;  // what the counters of a new one say
  std::vector<Network> spares_;
  bool trees_ = true;     // until the kernel says that it cannot
  bool outlets_ = false;  // somebody wants them, and the kernel has not said that it cannot
  sys::LoopbackRoute route_ = sys::LoopbackRoute::none;
};

}  // namespace osb::launcher
