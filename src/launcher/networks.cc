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

Result<Networks> Networks::open(Back back) {
  Networks networks;
  if (back == Back::yes) networks.home_ = TRY(sys::own_network_namespace());
  return networks;
}

Result<Network> Networks::make() {
  Network made{TRY(sys::create_network_namespace(home_.get())), Fd(), Fd()};
  if (!home_.valid()) return made;
  if (silence_.empty()) silence_ = sys::network_counters(made.space.get(), home_.get()).value_or("");
  made.sysfs = TRY(sys::sysfs_of_network(made.space.get(), home_.get()));
  return made;
}

Result<Network> Networks::take() {
  if (spares_.empty()) return make();
  auto found =
      std::find_if(spares_.rbegin(), spares_.rend(), [](const Network& spare) { return spare.tree.valid(); });
  if (found == spares_.rend()) found = spares_.rbegin();
  Network spare = std::move(*found);
  spares_.erase(std::next(found).base());
  return spare;
}

bool Networks::complete() {
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
  // That one was for one sandbox (system_trees.h).
  network.tree.reset();
  spares_.push_back(std::move(network));
}

void Networks::drop_spares() {
  if (spares_.size() > kAhead) spares_.resize(kAhead);
}

}  // namespace osb::launcher
