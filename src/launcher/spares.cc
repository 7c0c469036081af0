#include "launcher/spares.h"

#include "base/log.h"
#include "launcher/network_notes.h"
#include "launcher/ready_steps.h"
#include "launcher/records.h"
#include "launcher/snapshot_manifest.h"
#include "launcher/volume_store.h"
#include "sys/namespaces.h"

namespace osb::launcher {
namespace {

constexpr size_t kMostLent = 64;
constexpr size_t kRootsAhead = 4;
// What a sandbox may have in the kernel's memory if its file systems are to be used again: so much at most is
// thrown away while others wait.
constexpr int64_t kMostKernelMemory = 8 << 20;

}  // namespace

std::vector<std::string> overlay_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::overlay) names.push_back(step.name);
  }
  return names;
}

Spares::Spares(const Settings& settings, StateDir& state, IdRanges ranges)
    : settings_(&settings),
      state_(&state),
      ranges_(std::move(ranges)),
      user_namespaces_(settings.rootless ? UserNamespaces::Of::sandbox : UserNamespaces::Of::range),
      roots_(settings, state) {}

Result<Spares> Spares::open(const Settings& settings, StateDir& state, IdRanges ranges) {
  Spares spares(settings, state, std::move(ranges));
  spares.networks_ =
      TRY(Networks::open(settings.rootless ? Networks::Back::no : Networks::Back::yes,
                         settings.egress.empty() ? Networks::Outlets::no : Networks::Outlets::yes));
  spares.outlets_ = TRY(WaitingOutlets::open());
  if (!spares.roots_.available() || settings.engine_only) return spares;
  auto nothing = sys::create_empty_mount_namespace(state.path(state::kMount));
  if (!nothing) log::warn("creates will be slower", {{"reason", nothing.error().message}});
  if (nothing) spares.nothing_ = std::move(*nothing);
  return spares;
}

// One that was made ahead becomes the sandbox's; else a new one, to be opened.
Result<Fd> Spares::make_directory(const Plan& plan, Place& place, Cleanup& undo) {
  undo.push([this, id = plan.id] { (void)state_->discard(id); });
  if (!place.root)
    return state_->create_sandbox(plan.id, place.range, plan.image, overlay_names(plan),
                                  used_layers(plan, settings_->state_dir));
  std::string name = std::to_string(place.range);
  undo.push([this, name] { (void)state_->discard_spare(name); });
  TRY(state_->spare_to_sandbox(name, plan.id));
  return Fd();
}

Result<Place> Spares::make_place(const Plan& plan, Cleanup& undo) {
  bool ahead = roots_.available() && !plan.disk_bytes;
  Place place;
  if (ahead) place.root = roots_.take(root_key(plan));
  place.range = place.root ? place.root->range : TRY(ranges_.find_free());
  ranges_.mark(place.range, true);
  undo.push([this, range = place.range] { ranges_.mark(range, false); });
  Fd directory = TRY(make_directory(plan, place, undo));
  // Not before the directory is there: it tells that the image is in use.
  place.layers = TRY(open_layers(plan, *settings_));
  if (place.root && !Roots::fits(*place.root, place.layers)) {
    // Another image has come to lie where the old one was.
    undo.run();
    return make_place(plan, undo);
  }
  if (ahead && !place.root) {
    int ids = TRY(user_namespace(place.range));
    place.root = TRY(Roots::make(plan, place.layers, directory.get(), ids));
    place.root->range = place.range;
  }
  if (!place.root) {
    size_t lowers = 0;
    for (const auto& opened : place.layers) lowers += opened.size();
    TRY(state_->ensure_lowers(lowers));
  }
  place.from_nothing = place.root || (plan.disk_bytes && roots_.available() && nothing_.valid());
  return place;
}

void Spares::lend(const Plan& plan, Place place, Network network) {
  // The new process has them now. What is attached stays as long as anybody has it open.
  network.tree.reset();
  // Of a sandbox without a network they close: what tries to leave is refused at once.
  if (plan.network.kind != PlanNetwork::Kind::none && !network.outlet.empty()) {
    bool is_open = plan.network.kind == PlanNetwork::Kind::open;
    outlets_.put(plan.id, std::move(network.outlet),
                 is_open ? WaitingOutlets::Watched::yes : WaitingOutlets::Watched::no);
  }
  network.outlet.clear();
  if (!place.root) return;
  place.root->devices.reset();
  if (model_.steps.empty() || root_key(model_) != place.root->key) {
    model_ = plan;
    model_.record.clear();
  }
  lent_[plan.id] = {std::move(*place.root), std::move(network)};
  if (lent_.size() > kMostLent) lent_.erase(lent_.begin());
}

void Spares::keep_network_from_others(const std::string& id) {
  // Whoever holds sockets of it could reach the next sandbox of that network.
  if (auto lent = lent_.find(id); lent != lent_.end()) lent->second.network = {};
}

bool Spares::is_untouched(const std::string& id, const Lent& lent) const {
  auto directory = state_->open_sandbox(id);
  return directory && Roots::untouched(lent.root, directory->get());
}

void Spares::let_go_if_used(const std::string& id, int64_t kernel_memory) {
  auto lent = lent_.find(id);
  if (lent == lent_.end()) return;
  if (kernel_memory > kMostKernelMemory || !is_untouched(id, lent->second)) lent_.erase(lent);
}

Result<void> Spares::take_back(const std::string& id) {
  // Empty when the egress process has it.
  sys::Outlet outlet = outlets_.take(id);
  auto lent = lent_.extract(id);
  if (!lent.empty() && is_untouched(id, lent.mapped())) {
    Lent& used = lent.mapped();
    used.network.outlet = std::move(outlet);
    if (used.network.space.valid()) networks_.give_back(std::move(used.network));
    if (keep_as_spare(id, std::move(used.root))) return {};
  }
  auto range = state_->range_of(id);
  TRY(state_->discard(id));
  if (range) ranges_.mark(*range, false);
  return {};
}

// False when the sandbox's directory is still where it was.
bool Spares::keep_as_spare(const std::string& id, Root root) {
  uint32_t range = root.range;
  std::string name = std::to_string(range);
  // The next sandbox in there must not be taken for this one.
  auto directory = state_->open_sandbox(id);
  if (directory) VolumeStore::forget_note(directory->get());
  if (!directory || !remove_record(directory->get()) || !remove_network_note(directory->get()) ||
      !state_->sandbox_to_spare(id, name))
    return false;
  if (keep(std::move(root))) return true;
  (void)state_->discard_spare(name);
  ranges_.mark(range, false);
  return true;
}

Result<void> Spares::keep(Root root) {
  if (roots_.full()) TRY(drop_oldest_root());
  return roots_.keep(std::move(root));
}

bool Spares::prepare() {
  ranges_.prepare();
  if (auto range = ranges_.find_free(); range && !settings_->rootless) (void)user_namespace(*range);
  return networks_.prepare() || prepare_root();
}

// One more for a plan like the last one, or its devices; false when nothing is left to do, or when it failed.
bool Spares::prepare_root() {
  if (model_.steps.empty()) return false;
  if (std::string key = root_key(model_); roots_.count(key) >= kRootsAhead)
    return roots_.complete(key, kRootsAhead);
  auto made = make_spare(model_);
  if (made) return true;
  log::warn("cannot make a file system ahead", {{"error", made.error().message}});
  model_ = {};
  return false;
}

Result<void> Spares::make_spare(const Plan& plan) {
  Cleanup undo;
  uint32_t range = TRY(ranges_.find_free());
  ranges_.mark(range, true);
  undo.push([&] { ranges_.mark(range, false); });
  std::string name = std::to_string(range);
  undo.push([&] { (void)state_->discard_spare(name); });
  Fd directory = TRY(state_->create_spare(name, range, plan.image, overlay_names(plan),
                                          used_layers(plan, settings_->state_dir)));
  Layers layers = TRY(open_layers(plan, *settings_));
  Root root = TRY(Roots::make(plan, layers, directory.get(), TRY(user_namespace(range))));
  root.range = range;
  TRY(keep(std::move(root)));
  undo.release();
  return {};
}

void Spares::discard_root(Root root) {
  if (auto discarded = state_->discard_spare(std::to_string(root.range)); !discarded)
    return log::error("cannot drop a spare", {{"error", discarded.error().message}});
  ranges_.mark(root.range, false);
}

Result<void> Spares::drop_oldest_root() {
  Root oldest = roots_.take_oldest();
  TRY(state_->discard_spare(std::to_string(oldest.range)));
  ranges_.mark(oldest.range, false);
  return {};
}

void Spares::drop() {
  model_ = {};
  networks_.drop_spares();
  drop_roots();
  ranges_.give_back(1);
}

void Spares::drop_roots_over_snapshots() {
  if (!used_layers(model_, settings_->state_dir).empty()) model_ = {};
  while (auto root = roots_.take_over(state_->path(state::kSnapshotLayers) + "/"))
    discard_root(std::move(*root));
}

void Spares::drop_roots() {
  while (!roots_.empty()) {
    if (auto dropped = drop_oldest_root(); !dropped)
      log::error("cannot drop a spare", {{"error", dropped.error().message}});
  }
}

void Spares::leave() {
  while (!roots_.empty()) ranges_.mark(roots_.take_oldest().range, false);
  ranges_.give_back(0);
}

}  // namespace osb::launcher
