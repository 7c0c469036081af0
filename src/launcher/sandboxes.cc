#include "launcher/sandboxes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "launcher/checks.h"
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

}  // namespace

Result<Sandboxes> Sandboxes::open(const Settings& settings, StateDir& state, sys::CgroupTree& cgroups) {
  auto views = TRY(LimitViews::open(settings.state_dir + "/" + state::kViews));
  std::vector<std::string> ids = TRY(state.list());
  IdRanges ranges = settings.rootless ? IdRanges::none() : TRY(ranges_of(ids, state, cgroups.layout().v2));
  Spares spares = TRY(Spares::open(settings, state, std::move(ranges)));
  Sandboxes sandboxes(settings, state, cgroups, std::move(views), std::move(spares));
  if (!settings.rootless) TRY(sandboxes.leave_strangers_alone());
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

void Sandboxes::drop_spares() {
  cgroups_->drop_spent();
  spares_.drop();
}

void Sandboxes::leave() {
  spares_.leave();
  cgroups_->leave();
}

Result<Starting> Sandboxes::start(const Plan& plan) {
  Starting starting = TRY(start_process(plan, {*settings_, *state_, *cgroups_, views_, cpus_, spares_}));
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
  if (!keep_files) return spares_.take_back(id);
  spares_.forget(id);
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
  std::vector<std::string> all = TRY(state_->list());
  auto first = std::upper_bound(all.begin(), all.end(), after);
  auto count = std::min(most, static_cast<size_t>(all.end() - first));
  return std::vector<std::string>(first, first + static_cast<ptrdiff_t>(count));
}

}  // namespace osb::launcher
