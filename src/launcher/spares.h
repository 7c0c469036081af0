#pragma once

// Where sandboxes live: a range of ids, a directory, the overlays over it, a network. They are made ahead of
// need, and what a sandbox left as it found it serves the next one (decision 11).
//
// Belongs to the launcher's thread.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cleanup.h"
#include "launcher/id_ranges.h"
#include "launcher/networks.h"
#include "launcher/plan.h"
#include "launcher/roots.h"
#include "launcher/state_dir.h"
#include "launcher/user_namespaces.h"
#include "launcher/waiting_outlets.h"

namespace osb::launcher {

std::vector<std::string> overlay_names(const Plan& plan);

struct Place {
  uint32_t range = 0;
  std::optional<Root> root;  // none: its process mounts the overlays
  Layers layers;
  // Where overlays can be made of descriptors the process starts from nothing, also one that makes its own.
  bool from_nothing = false;
};

class Spares {
 public:
  static Result<Spares> open(const Settings& settings, StateDir& state, IdRanges ranges);

  // A directory for a sandbox, and its overlays if they can be mounted ahead of its process. What was made is
  // undone by `undo`.
  Result<Place> make_place(const Plan& plan, Cleanup& undo);
  Result<Network> take_network() { return networks_.take(); }
  Result<int> user_namespace(uint32_t range) { return user_namespaces_.get(range, ranges_); }
  int home_network() const { return networks_.home(); }
  int nothing() const { return nothing_.get(); }  // an empty mount namespace to start from; -1: none

  // The sandbox runs in it now. Some are remembered, to be used again.
  void lend(const Plan& plan, Place place, Network network);
  // The ways out of those that nobody serves yet.
  WaitingOutlets& outlets() { return outlets_; }
  // The server holds sockets of this network: it is for nobody else.
  void keep_network_from_others(const std::string& id);
  bool has_lent(const std::string& id) const { return lent_.contains(id); }
  // What is not to be used again is let go while the sandbox still holds it: then its end takes it apart, not
  // this process.
  void let_go_if_used(const std::string& id, int64_t kernel_memory);
  void forget(const std::string& id) {
    lent_.erase(id);
    (void)outlets_.take(id);
  }
  // No process is left: what can be used again is, the rest goes to the trash.
  Result<void> take_back(const std::string& id);

  // Makes things ahead of need; true when there was something to make.
  bool prepare();
  // Gives up what was made ahead or kept for the next sandbox, but for a few things that cost nothing to
  // keep.
  void drop();
  // Those that have layers of snapshots in them; the next create decides anew what is made ahead.
  void drop_roots_over_snapshots();
  // At the end. The directories of spares go with StateDir::leave().
  void leave();

 private:
  // What a running sandbox uses and may leave as it found it.
  struct Lent {
    Root root;
    Network network;  // without a namespace: not for others
  };

  Spares(const Settings& settings, StateDir& state, IdRanges ranges);
  Result<Fd> make_directory(const Plan& plan, Place& place, Cleanup& undo);
  bool prepare_root();
  Result<void> make_spare(const Plan& plan);
  Result<void> keep(Root root);
  bool keep_as_spare(const std::string& id, Root root);
  Result<void> drop_oldest_root();
  void drop_roots();
  void discard_root(Root root);
  bool is_untouched(const std::string& id, const Lent& lent) const;

  const Settings* settings_;
  StateDir* state_;
  IdRanges ranges_;
  UserNamespaces user_namespaces_;
  Networks networks_;
  Roots roots_;
  Fd nothing_;  // a mount namespace to start from; see ChildOrder
  Plan model_;  // the last plan whose root could be made ahead; without steps: none
  std::map<std::string, Lent> lent_;
  WaitingOutlets outlets_;
};

}  // namespace osb::launcher
