#include "launcher/sandboxes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "launcher/capture.h"
#include "launcher/checks.h"
#include "launcher/diff.h"
#include "launcher/engine_socket.h"
#include "launcher/network_notes.h"
#include "launcher/records.h"
#include "launcher/rootless.h"
#include "sys/namespaces.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

Result<IdRanges> ranges_of(const std::vector<std::string>& ids, const StateDir& state,
                           const std::string& groups) {
  std::vector<uint32_t> used;
  for (const std::string& id : ids) {
    auto range = state.range_of(id);
    // One that cannot be looked at may live, and its ids must not be given to a second sandbox.
    if (!range && range.error().code != Code::not_found) return std::unexpected(std::move(range.error()));
    if (range) used.push_back(*range);
  }
  IdRanges ranges = TRY(IdRanges::open(groups, state.identity(), used));
  if (ranges.foreign() > 0)
    log::warn("sandboxes share blocks of user ids with another service", {{"sandboxes", ranges.foreign()}});
  return ranges;
}

// At most so many behind `after`, of names in order.
std::vector<std::string> page_of(const std::vector<std::string>& all, const std::string& after, size_t most) {
  auto first = std::upper_bound(all.begin(), all.end(), after);
  auto count = std::min(most, static_cast<size_t>(all.end() - first));
  return std::vector<std::string>(first, first + static_cast<ptrdiff_t>(count));
}

}  // namespace

Result<Sandboxes> Sandboxes::open(const Settings& settings, StateDir& state, sys::CgroupTree& cgroups) {
  auto views = TRY(LimitViews::open(settings.state_dir + "/" + state::kViews));
  std::vector<std::string> ids = TRY(state.list());
  bool has_groups = !settings.rootless && !settings.engine_only;
  IdRanges ranges = has_groups ? TRY(ranges_of(ids, state, cgroups.layout().v2)) : IdRanges::none();
  Spares spares = TRY(Spares::open(settings, state, std::move(ranges)));
  VolumeStore volumes = TRY(VolumeStore::open(settings, state));
  Containers containers = TRY(Containers::open(settings.state_dir + "/" + state::kContainers));
  Sandboxes sandboxes(settings, state, cgroups, std::move(views), std::move(spares), std::move(volumes),
                      std::move(containers));
  if (has_groups) {
    TRY(sandboxes.leave_strangers_alone());
    sandboxes.snapshots_ = TRY(SnapshotStore::open(settings.state_dir));
  }
  for (const std::string& id : ids) {
    auto first = sandboxes.first_.of(id);
    if (!first) continue;
    auto pid = sys::pid_of(*first);
    if (!pid) continue;
    sandboxes.cpus_.adopt(id, *pid);
    if (settings.rootless) find_group(cgroups, id, *pid);
  }
  return sandboxes;
}

// Below our group there should be nothing but groups of sandboxes that have a directory: each is made after
// its directory and goes before it. Whatever else has processes is not known to be ours, so it is not ended.
Result<void> Sandboxes::leave_strangers_alone() {
  size_t alive = 0;
  for (const std::string& name : TRY(cgroups_->list())) {
    if (state_->range_of(name)) continue;
    if (!cgroups_->remove(name)) ++alive;
  }
  if (alive > 0)
    log::warn("processes run in groups of this service, but have no directory here; they are left alone",
              {{"groups", alive}});
  return {};
}

bool Sandboxes::drop_spares() {
  // A worker that is under way may empty what goes now after it has looked for layers that nobody uses.
  sweep_is_due_ |= snapshots_ && snapshots_->has_layers();
  bool all = cgroups_->drop_spent();
  spares_.drop();
  return all;
}

void Sandboxes::leave() {
  spares_.leave();
  cgroups_->leave();
}

Result<Starting> Sandboxes::start(const Plan& plan) {
  if (settings_->engine_only)
    return fail(Code::unsupported,
                "this service was started without the rights to make sandboxes of its own (CAP_SYS_ADMIN); "
                "its sandboxes are containers of the Docker engine");
  Starting starting =
      TRY(start_process(plan, {*settings_, *state_, *cgroups_, views_, cpus_, spares_, volumes_}));
  if (Fd copy(::fcntl(starting.pidfd.get(), F_DUPFD_CLOEXEC, 0)); copy.valid())
    first_.remember(plan.id, std::move(copy));
  return starting;
}

Result<Fd> Sandboxes::kill(const std::string& id) {
  TRY(check_id(id));
  auto first = first_.take(id);
  // Without root nothing else ends a sandbox: as long as it is not known to be gone, it is not removed
  // either.
  if (!first && settings_->rootless && first.error().code != Code::not_found)
    return std::unexpected(std::move(first.error()));
  if (spares_.has_lent(id)) spares_.let_go_if_used(id, cgroups_->kernel_memory(id).value_or(INT64_MAX));
  // Without root there are no groups; with the first process of a pid namespace all others end.
  if (settings_->rootless && first) TRY(sys::send_signal(first->get(), SIGKILL));
  TRY(cgroups_->kill(id));
  return first ? std::move(*first) : Fd();
}

Result<void> Sandboxes::remove(const std::string& id, bool keep_files) {
  TRY(cgroups_->remove(id));
  cpus_.release(id);
  heard_.erase(id);
  containers_.remove(id);
  sweep_is_due_ |= !keep_files && snapshots_ && snapshots_->has_layers();
  if (keep_files) {
    spares_.forget(id);
    return {};
  }
  std::vector<std::string> volumes = volumes_.used_by(id);
  TRY(spares_.take_back(id));
  volumes_.release(volumes);
  return {};
}

Result<Recalled> Sandboxes::recall(const std::string& id) {
  TRY(check_id(id));
  Recalled recalled;
  if (auto directory = state_->open_sandbox(id)) {
    recalled.record = TRY(read_record(directory->get()));
  } else if (directory.error().code != Code::not_found) {
    return std::unexpected(std::move(directory.error()));
  }
  auto init = first_.of(id);
  auto pid = init ? sys::pid_of(*init) : Result<pid_t>(std::unexpected(std::move(init.error())));
  auto ticks = pid ? sys::process_start_ticks(*pid) : Result<uint64_t>(std::unexpected(pid.error()));
  if (!ticks && ticks.error().code == Code::not_found) return recalled;
  recalled.first_process.start_ticks = TRY(std::move(ticks));
  recalled.first_process.pid = *pid;
  return recalled;
}

Result<void> Sandboxes::keep_record(const std::string& id, std::string_view record) {
  TRY(check_id(id));
  return write_record(TRY(state_->open_sandbox(id)).get(), record);
}

Result<std::vector<Fd>> Sandboxes::sockets(const std::string& id, size_t count) {
  int init = TRY(first_.of(id));
  spares_.keep_network_from_others(id);
  std::vector<Fd> sockets(count);
  TRY(sys::sockets_in_network(init, spares_.home_network(), sockets.data(), static_cast<int>(count)));
  return sockets;
}

Result<Listeners> Sandboxes::listeners(const std::string& id) {
  if (containers_.contains(id)) return containers_.listeners(id, spares_.home_network());
  if (heard_.contains(id)) return fail(Code::already_exists, "somebody has the sandbox's listeners");
  int init = TRY(first_.of(id));
  // Before anything is opened in a network that was made without a way out.
  TRY(network_of(id));
  sys::Outlet outlet = spares_.outlets().take(id);
  if (outlet.empty()) {
    auto opened = sys::open_outlet(init, spares_.home_network(), sys::OutletFor::again);
    if (!opened) {
      bool never = opened.error().sys_errno == ENETUNREACH;
      return fail(Code::unsupported,
                  "the sandbox has no way out: " + opened.error().message +
                      (never ? "; make a new one to have it"
                             : "; the kernel needs nf_tables with nat (nft_redir, nft_reject_inet)"));
    }
    outlet = std::move(*opened);
  }
  return give_listeners(id, std::move(outlet));
}

Result<Fd> Sandboxes::connect_engine() {
  if (settings_->engine_socket.empty()) return SandboxTable::connect_engine();
  return launcher::connect_engine(settings_->engine_socket);
}

Result<PlanNetwork::Kind> Sandboxes::network_of(const std::string& id) const {
  PlanNetwork::Kind kind = read_network_note(TRY(state_->open_sandbox(id)).get());
  if (kind == PlanNetwork::Kind::none)
    return fail(Code::unsupported, "the sandbox was made without a network");
  return kind;
}

Result<Listeners> Sandboxes::give_listeners(const std::string& id, sys::Outlet outlet) {
  Listeners given{id, TRY(network_of(id)) == PlanNetwork::Kind::open, {}};
  given.descriptors.emplace_back(::fcntl(TRY(first_.of(id)), F_DUPFD_CLOEXEC, 0));
  if (!given.descriptors.back().valid()) return fail_errno("copy a pidfd");
  for (Fd& socket : outlet) given.descriptors.push_back(std::move(socket));
  heard_.insert(id);
  return given;
}

std::optional<Listeners> Sandboxes::next_caller() {
  while (auto id = spares_.outlets().next()) {
    auto given = give_listeners(*id, spares_.outlets().take(*id));
    if (given) return std::move(*given);
    // One that ends has nothing to say any more.
    if (given.error().code != Code::not_found)
      log::error("a sandbox stays without a way out", {{"id", *id}, {"error", given.error().message}});
  }
  return std::nullopt;
}

// Its sockets were closed: what leaves the sandbox is refused until somebody listens again.
void Sandboxes::reopen_outlet(const std::string& id) {
  auto init = first_.of(id);
  if (!init || !network_of(id)) return;
  auto outlet = sys::open_outlet(*init, spares_.home_network(), sys::OutletFor::again);
  if (outlet) return spares_.outlets().put(id, std::move(*outlet), WaitingOutlets::Watched::yes);
  log::warn("a sandbox has no way out", {{"id", id}, {"error", outlet.error().message}});
}

void Sandboxes::nobody_listens() {
  containers_.nobody_listens();
  for (const std::string& id : std::exchange(heard_, {})) reopen_outlet(id);
}

Result<Fd> Sandboxes::adopt(const std::string& id, const Started& first_process) {
  Fd pidfd = TRY(first_.adopt(id, first_process));
  // Its sockets ended with the launcher before this one.
  if (callers() >= 0 && !heard_.contains(id) && !spares_.outlets().contains(id)) reopen_outlet(id);
  return pidfd;
}

Result<int64_t> Sandboxes::oom_kills(const std::string& id) {
  TRY(check_id(id));
  return cgroups_->oom_kills(id);
}

Result<void> Sandboxes::freeze(const std::string& id, bool frozen) {
  TRY(check_id(id));
  if (settings_->rootless && first_.knows(id) && !cgroups_->open_events(id))
    return fail(Code::unsupported, "the sandbox was made without a cgroup");
  return cgroups_->freeze(id, frozen);
}

Result<bool> Sandboxes::is_to_freeze(const std::string& id) {
  auto asked = cgroups_->is_to_freeze(id);
  // Without root it may have been made in another group, or in none; then nobody froze it.
  if (!asked && settings_->rootless && asked.error().code == Code::not_found) return false;
  return asked;
}

Result<std::vector<std::string>> Sandboxes::list(const std::string& after, size_t most) {
  // Not what only has a group: see leave_strangers_alone().
  return page_of(TRY(state_->list()), after, most);
}

Result<const SnapshotStore*> Sandboxes::snapshots() const {
  if (snapshots_) return &*snapshots_;
  return fail(Code::unsupported, "a service without root makes no snapshots");
}

Result<Forked> Sandboxes::capture(const std::string& id, const std::string& snapshot) {
  const SnapshotStore* store = TRY(snapshots());
  return fork_in_halves(
      [&](const Halfway& halfway) { return capture_sandbox(*state_, *store, id, snapshot, halfway); });
}

Result<Forked> Sandboxes::keep_snapshot(const std::string& id, Lasting lasting) {
  const SnapshotStore* store = TRY(snapshots());
  return fork_work([&] { return store->keep(id, lasting); });
}

Result<void> Sandboxes::drop_snapshot(const std::string& id) {
  const SnapshotStore* store = TRY(snapshots());
  // A root that was made ahead of need would keep a layer for nobody.
  spares_.drop_roots_over_snapshots();
  sweep_is_due_ = true;
  return store->drop(id);
}

Result<FoundSnapshot> Sandboxes::find_snapshot(const std::string& id, Lasting lasting) {
  return TRY(snapshots())->find(id, lasting);
}

Result<std::vector<std::string>> Sandboxes::list_snapshots(const std::string& after, size_t most) {
  return page_of(TRY(TRY(snapshots())->list()), after, most);
}

Result<Fd> Sandboxes::diff(const std::string& id) {
  TRY(snapshots());
  TRY(state_->open_sandbox(id));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd read(pipe[0]), write(pipe[1]);
  TRY(fork_work([&] {
    read.reset();  // or nobody would notice that the reader has gone
    return write_diff(*state_, id, write.get());
  }));
  return read;
}

Result<SandboxTable::Ensured> Sandboxes::ensure_volume(const VolumeRequest& request) {
  const Step& step = request.step;
  if (step.kind == Step::Kind::bind) {
    TRY(open_host_path(*settings_, step.source, request.create ? Missing::made : Missing::refused));
    return Ensured();
  }
  auto path = parse_volume_path(step.source);
  if (!path) return fail(Code::permission_denied, "refused: not the name of a volume");
  Ensured ensured;
  VolumeManifest wanted{.ephemeral = request.ephemeral};
  if (request.size_bytes >= 0) wanted.size_bytes = request.size_bytes;
  if (auto found = volumes_.find(*path); !found) {
    if (found.error().code != Code::not_found || !request.create)
      return std::unexpected(std::move(found.error()));
    TRY(volumes_.check(wanted));
    ensured.under_way = TRY(fork_work([this, path = *path, wanted] { return volumes_.make(path, wanted); }));
    return ensured;
  }
  // A directory in a volume is made, also in one that has to be there.
  if (!path->below.empty()) TRY(volumes_.make_directories(*path));
  return ensured;
}

Result<std::vector<VolumesAnswer::Volume>> Sandboxes::list_volumes(const std::string& owner,
                                                                   const std::string& after, size_t most) {
  std::vector<VolumesAnswer::Volume> out;
  for (ListedVolume& one : TRY(volumes_.list(owner, after, most)))
    out.push_back({std::move(one.name), one.manifest.created, one.manifest.ephemeral, one.users,
                   one.manifest.size_bytes.value_or(-1)});
  return out;
}

// Asked when a worker could be started.
bool Sandboxes::trash_is_empty() {
  bool due = std::exchange(sweep_is_due_, false);
  return !due && state_->trash_is_empty();
}

void Sandboxes::run_trash_worker() {
  // What was thrown away may have been the last to use a layer.
  if (snapshots_ && snapshots_->has_layers()) (void)snapshots_->sweep();
  state_->run_trash_worker();
}

}  // namespace osb::launcher
