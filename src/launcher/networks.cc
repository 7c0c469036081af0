#include "launcher/networks.h"

#include "base/log.h"
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
  Network made{TRY(sys::create_network_namespace(home_.get())), Fd()};
  if (!home_.valid()) return made;
  if (silence_.empty()) silence_ = sys::network_counters(made.space.get(), home_.get()).value_or("");
  made.sysfs = TRY(sys::sysfs_of_network(made.space.get(), home_.get()));
  return made;
}

Result<Network> Networks::take() {
  if (spares_.empty()) return make();
  Network spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

bool Networks::prepare() {
  if (spares_.size() >= kAhead) return false;
  auto made = make();
  if (!made) {
    log::warn("cannot make a spare network namespace", {{"error", made.error().message}});
    return false;
  }
  spares_.push_back(std::move(*made));
  return spares_.size() < kAhead;
}

void Networks::give_back(Network network) {
  if (silence_.empty() || spares_.size() >= kMostSpares) return;
  auto counters = sys::network_counters(network.space.get(), home_.get());
  if (!counters || *counters != silence_ || sys::forget_cached(network.sysfs.get()) < 0) return;
  spares_.push_back(std::move(network));
}

void Networks::drop_spares() {
  if (spares_.size() > kAhead) spares_.resize(kAhead);
}

}  // namespace osb::launcher
