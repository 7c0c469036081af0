#include "launcher/networks.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/log.h"
#include "launcher/system_trees.h"
#include "sys/mount.h"
#include "sys/namespaces.h"

namespace osb::launcher {
namespace {

constexpr size_t kAhead = 4;
constexpr size_t kMostSpares = 32;

}  // namespace

Result<Networks> Networks::open(Back back, Outlets outlets) {
  Networks networks;
  networks.outlets_ = outlets == Outlets::yes;
  if (networks.outlets_) networks.route_ = sys::LoopbackRoute::everything;
  if (back == Back::yes) networks.home_ = TRY(sys::own_network_namespace());
  return networks;
}

Result<Network> Networks::make() {
  Network made{TRY(sys::create_network_namespace(home_.get(), route_)), Fd(), Fd(), {}};
  made.has_rules = add_outlet(made, sys::OutletFor::fresh);
  if (!home_.valid()) return made;
  if (silence_.empty()) silence_ = sys::network_counters(made.space.get(), home_.get()).value_or("");
  made.sysfs = TRY(sys::sysfs_of_network(made.space.get(), home_.get()));
  return made;
}

// A sandbox without one lives without a network: then its egress says why (Sandboxes::listeners).
bool Networks::add_outlet(Network& network, sys::OutletFor what) {
  if (!outlets_) return false;
  auto outlet = sys::open_outlet(network.space.get(), home_.get(), what);
  if (outlet) {
    network.outlet = std::move(*outlet);
    return true;
  }
  // A kernel without packet rules stays so; anything else may pass.
  int error = outlet.error().sys_errno;
  if (what == sys::OutletFor::again_or_not && error == EADDRINUSE) return false;  // somebody has it still
  if (error == EOPNOTSUPP || error == ENOENT || error == EPROTONOSUPPORT || error == EPERM) outlets_ = false;
  log::warn("sandboxes have no way out", {{"error", outlet.error().message}});
  return false;
}

Result<Network> Networks::take() {
  if (spares_.empty()) return make();
  auto found = std::find_if(spares_.rbegin(), spares_.rend(), [&](const Network& spare) {
    return spare.tree.valid() && (!spare.has_rules || !spare.outlet.empty());
  });
  if (found == spares_.rend()) found = spares_.rbegin();
  Network spare = std::move(*found);
  spares_.erase(std::next(found).base());
  if (spare.outlet.empty() && spare.has_rules) (void)add_outlet(spare, sys::OutletFor::again);
  return spare;
}

bool Networks::complete() {
  auto without = std::find_if(spares_.rbegin(), spares_.rend(),
                              [](const Network& spare) { return spare.has_rules && spare.outlet.empty(); });
  if (without != spares_.rend() && add_outlet(*without, sys::OutletFor::again_or_not)) return true;
  if (!trees_ || !home_.valid()) return false;
  auto has_tree = [](const Network& spare) { return spare.tree.valid(); };
  if (std::count_if(spares_.begin(), spares_.end(), has_tree) >= static_cast<ptrdiff_t>(kAhead)) return false;
  auto found = std::find_if_not(spares_.rbegin(), spares_.rend(), has_tree);
  if (found == spares_.rend()) return false;
  int made = make_sysfs_tree(found->sysfs.get());
  // A kernel that mounts only onto what is attached (before 6.15) stays so; anything else may pass.
  if (made == -EINVAL) trees_ = false;
  if (made < 0) return false;
  found->tree = Fd(made);
  return true;
}

bool Networks::prepare() {
  if (spares_.size() >= kAhead) return complete();
  auto made = make();
  if (!made) {
    log::warn("cannot make a spare network namespace", {{"error", made.error().message}});
    return false;
  }
  spares_.push_back(std::move(*made));
  return true;
}

void Networks::give_back(Network network) {
  if (silence_.empty() || spares_.size() >= kMostSpares) return;
  auto counters = sys::network_counters(network.space.get(), home_.get());
  // Whatever was sent may have left something: neighbours, routes, reports that are still to come.
  if (!counters || *counters != silence_ || sys::forget_cached(network.sysfs.get()) < 0) return;
  network.tree.reset();  // was for one sandbox (system_trees.h)
  spares_.push_back(std::move(network));
}

void Networks::drop_spares() {
  if (spares_.size() > kAhead) spares_.resize(kAhead);
}

}  // namespace osb::launcher
