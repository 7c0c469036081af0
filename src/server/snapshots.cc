#include "server/snapshots.h"

#include <algorithm>

#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/kept_policy.h"
#include "server/record.h"

namespace osb::server {

using sandbox::refuse;
using sandbox::Snapshot;
using sandbox::SnapshotState;
namespace reason = sandbox::snapshot_reason;

namespace {

constexpr io::Duration kAskAgain = std::chrono::milliseconds(200);
constexpr int64_t kEverything = -1;

bool can_be_captured(sandbox::State state) {
  return state == sandbox::State::running || state == sandbox::State::paused;
}

// One that has ended keeps them until it is deleted.
bool has_files(sandbox::State state) {
  return state != sandbox::State::pending && state != sandbox::State::stopping;
}

}  // namespace

Snapshots::Snapshots(io::Executor executor, store::Repository& store, runtime::Runtimes& runtimes,
                     Lifecycle& lifecycle, const Clock& clock)
    : executor_(executor),
      store_(store),
      runtimes_(runtimes),
      lifecycle_(lifecycle),
      clock_(clock),
      locks_(executor),
      tasks_(executor) {}

Task<> Snapshots::close() { co_await tasks_.close(); }

// One of which a snapshot can be made now.
Task<Outcome<sandbox::SandboxPtr>> Snapshots::find_source(Principal who, const std::string& id) {
  sandbox::SandboxPtr source = CO_TRY(co_await lifecycle_.get(std::move(who), id));
  if (!can_be_captured(source->status.state))
    co_return refuse(sandbox::snapshot_of_wrong_state(id, to_string(source->status.state)));
  if (const Error* why = lifecycle_.unreachable(id)) co_return refuse(sandbox::unreachable(id, *why));
  const runtime::Ability& can = runtimes_.of(source->runtime).capabilities().snapshots;
  if (!can) co_return refuse(sandbox::snapshots_unsupported(can.why));
  co_return source;
}

Task<Outcome<Snapshot>> Snapshots::create(Principal who, std::string sandbox_id,
                                          std::optional<std::string> name) {
  CO_TRY(co_await find_source(who, sandbox_id));
  // Whoever pauses, resumes or removes it now comes first; whoever does from here on waits.
  auto guard = co_await lifecycle_.hold(sandbox_id);
  sandbox::SandboxPtr source = CO_TRY(co_await find_source(who, sandbox_id));
  Snapshot row{.id = new_uuid4(), .owner = source->owner, .sandbox_id = sandbox_id, .name = std::move(name)};
  row.created = clock_.now();
  row.status = {SnapshotState::creating, reason::kAccepted, "Snapshot creation accepted.", row.created};
  row.runtime = source->runtime;
  row.base.image = co_await base_image_of(source->image);
  auto network = co_await runtimes_.of(row.runtime).network_of(source->handle);
  if (!network) co_return refuse(sandbox::unreachable(sandbox_id, network.error()));
  row.network = to_text(*network);
  if (row.network.empty()) row.network = CO_TRY(co_await policy_that_rests(*source));
  auto stored = co_await store_.check_room();
  if (stored) stored = co_await store_.insert_snapshot(row);
  if (!stored) co_return refuse(sandbox::snapshot_failed(stored.error()));
  tasks_.spawn(make(row, std::move(guard), source->handle));
  co_return row;
}

// Where no policy can be enforced, a sandbox that was made with one reaches nothing. Copies of it have that
// policy, for the day on which they can reach something.
Task<Outcome<std::string>> Snapshots::policy_that_rests(const sandbox::Sandbox& source) {
  runtime::Runtime& runtime = runtimes_.of(source.runtime);
  if (runtime.capabilities().network_policy) co_return std::string();
  auto recalled = co_await runtime.recall(source.handle);
  if (!recalled) co_return refuse(sandbox::unreachable(source.id, recalled.error()));
  co_return kept_network_of(recalled->record).value_or("");
}

Task<> Snapshots::make(Snapshot row, KeyedLock::Guard guard, std::string handle) {
  auto turn = co_await locks_.lock(row.id);
  Result<runtime::KeptSnapshot> kept;
  if (auto noted = co_await note_policy(row, handle); !noted)
    kept = std::unexpected(std::move(noted.error()));
  else
    kept = co_await capture_and_keep(row, std::move(guard), std::move(handle), &runtime::Runtime::keep);
  co_await finish(std::move(row), std::move(kept), false);
}

// The policy is in the row; and beside the snapshot for the day on which the rows are lost.
Task<Result<void>> Snapshots::note_policy(const Snapshot& row, std::string handle) {
  runtime::Runtime& runtime = runtimes_.of(row.runtime);
  auto recalled = CO_TRY(co_await runtime.recall(handle));
  if (recalled.record.empty()) co_return Result<void>();
  co_return co_await runtime.keep_record(handle, with_network(std::move(recalled.record), row.network));
}

Task<Result<runtime::KeptSnapshot>> Snapshots::capture_and_keep(Snapshot& row, KeyedLock::Guard held,
                                                                std::string handle, Keep keep) {
  runtime::Runtime& runtime = runtimes_.of(row.runtime);
  {
    auto guard = std::move(held);
    CO_TRY(co_await runtime.capture(std::move(handle), row.id));
  }
  co_return co_await keep_patiently(runtime, row.id, keep);
}

// What an earlier server asked for may still be under way.
Task<Result<runtime::KeptSnapshot>> Snapshots::keep_patiently(runtime::Runtime& runtime, std::string id,
                                                              Keep keep) {
  while (true) {
    auto kept = co_await (runtime.*keep)(id);
    // An engine that is away or slow says nothing about the snapshot.
    if (kept || (kept.error().code != Code::wrong_state && kept.error().code != Code::unavailable &&
                 kept.error().code != Code::timeout))
      co_return kept;
    co_await io::sleep_for(kAskAgain);
  }
}

Task<> Snapshots::finish(Snapshot row, Result<runtime::KeptSnapshot> kept, bool is_recovery) {
  if (kept) {
    row.base.image_id = std::move(kept->image_id);
    row.base.layers = std::move(kept->layers);
    row.bytes = static_cast<int64_t>(kept->bytes);
    row.status = {SnapshotState::ready, is_recovery ? reason::kRecovered : reason::kReady,
                  "The snapshot is complete.", clock_.now()};
    auto stored = co_await store_.set_snapshot_kept(row);
    if (stored) {
      log::info("snapshot ready", {{"id", row.id}, {"owner", row.owner}, {"bytes", row.bytes}});
      co_return;
    }
    // The next start finds it complete.
    log::error("cannot store that a snapshot is ready", {{"id", row.id}, {"error", stored.error().message}});
    co_return;
  }
  log::warn("snapshot failed", {{"id", row.id}, {"owner", row.owner}, {"error", kept.error().message}});
  bool lost = is_recovery && kept.error().code == Code::not_found;
  row.status = {SnapshotState::failed, is_recovery ? reason::kLost : reason::kFailed,
                lost ? "The service was restarted before the sandbox was captured; make another snapshot."
                     : sandbox::snapshot_failed(kept.error()).message,
                clock_.now()};
  (void)co_await runtimes_.of(row.runtime).drop(row.id);
  auto stored = co_await store_.set_snapshot_status(row.id, row.status);
  if (!stored)
    log::error("cannot store that a snapshot failed", {{"id", row.id}, {"error", stored.error().message}});
}

Task<Outcome<Snapshot>> Snapshots::get(Principal who, std::string id) {
  auto found = co_await store_.find_snapshot(Scope::of(who), id);
  if (!found) co_return refuse(sandbox::internal_error(found.error()));
  if (!*found) co_return refuse(sandbox::snapshot_not_found(id));
  co_return std::move(**found);
}

Task<Outcome<>> Snapshots::remove(Principal who, std::string id) {
  Snapshot row = CO_TRY(co_await get(who, id));
  // Not by waiting for its lock, which is held while it is made.
  if (row.status.state == SnapshotState::creating) co_return refuse(sandbox::snapshot_being_made(id));
  auto turn = co_await locks_.lock(id);
  row = CO_TRY(co_await get(who, id));
  if (row.status.state == SnapshotState::creating) co_return refuse(sandbox::snapshot_being_made(id));
  auto user = co_await store_.made_from(sandbox::image_of_snapshot(id));
  if (!user) co_return refuse(sandbox::internal_error(user.error()));
  if (*user) co_return refuse(sandbox::snapshot_in_use(id, **user));
  if (in_use_.contains(id)) co_return refuse(sandbox::snapshot_in_use(id, "that is being made"));
  auto removed = co_await remove_now(std::move(row));
  if (!removed) co_return refuse(sandbox::snapshot_failed(removed.error()));
  co_return Outcome<>();
}

// The row says that it is on its way out before anything of it goes.
Task<Result<void>> Snapshots::remove_now(Snapshot row) {
  if (row.status.state != SnapshotState::deleting) {
    sandbox::SnapshotStatus deleting{SnapshotState::deleting, reason::kDeleting,
                                     "The snapshot is being removed.", clock_.now()};
    CO_TRY(co_await store_.set_snapshot_status(row.id, std::move(deleting)));
  }
  CO_TRY(co_await runtimes_.of(row.runtime).drop(row.id));
  CO_TRY(co_await store_.remove_snapshot(row.id));
  log::info("snapshot removed", {{"id", row.id}, {"owner", row.owner}});
  co_return Result<void>();
}

Task<Outcome<Snapshots::Use>> Snapshots::find_base(Principal who, sandbox::CreateRequest& request) {
  const std::string id = request.snapshot;
  auto found = co_await store_.find_snapshot(Scope::of(who), id);
  if (!found) co_return refuse(sandbox::internal_error(found.error()));
  if (!*found) co_return refuse(sandbox::snapshot_not_found(id));
  Snapshot& row = **found;
  if (row.status.state != SnapshotState::ready)
    co_return refuse(sandbox::snapshot_not_ready(id, to_string(row.status.state), row.status.message));
  // From here on no deletion begins: there is no suspension between this and what was found.
  ++in_use_[id];
  Use use(nullptr, [this, id](void*) {
    if (auto one = in_use_.find(id); --one->second == 0) in_use_.erase(one);
  });
  request.base = std::move(row.base);
  if (request.runtime.empty()) request.runtime = row.runtime;
  if (!request.network_policy && !row.network.empty()) {
    auto policy = policy_from(row.network);
    if (!policy) co_return refuse(sandbox::internal_error(policy.error()));
    const auto& can = runtimes_.of(request.runtime).capabilities().network_policy;
    if (!can)
      co_return refuse(sandbox::unsupported_by_runtime(
          {Code::unsupported, 0, "the snapshot has a network policy, which cannot be enforced: " + can.why}));
    request.network_policy = std::move(*policy);
  }
  if (!request.restore_env) co_return use;
  auto kept = co_await runtimes_.of(row.runtime).keep(id);
  if (!kept) co_return refuse(sandbox::snapshot_failed(kept.error()));
  auto env = environment_of(kept->record);
  if (!env) co_return refuse(sandbox::snapshot_without_env(id));
  // What the request says comes last and counts.
  for (auto& [name, value] : request.env) {
    std::erase_if(*env, [&](const auto& pair) { return pair.first == name; });
    env->emplace_back(name, std::move(value));
  }
  request.env = std::move(*env);
  co_return use;
}

Task<Outcome<std::vector<sandbox::FileChange>>> Snapshots::changes(Principal who, std::string sandbox_id) {
  sandbox::SandboxPtr source = CO_TRY(co_await lifecycle_.get(std::move(who), sandbox_id));
  if (!has_files(source->status.state))
    co_return refuse(sandbox::no_files(sandbox_id, to_string(source->status.state), ""));
  if (const Error* why = lifecycle_.unreachable(sandbox_id))
    co_return refuse(sandbox::unreachable(sandbox_id, *why));
  const runtime::Ability& can = runtimes_.of(source->runtime).capabilities().snapshots;
  if (!can) co_return refuse(sandbox::snapshots_unsupported(can.why));
  auto found = co_await runtimes_.of(source->runtime).changes(source->handle);
  if (!found && (found.error().code == Code::not_found || found.error().code == Code::wrong_state))
    co_return refuse(
        sandbox::no_files(sandbox_id, to_string(source->status.state), std::move(found.error().message)));
  if (!found) co_return refuse(sandbox::internal_error(found.error()));
  std::ranges::sort(*found, {}, &sandbox::FileChange::path);
  co_return std::move(*found);
}

// Recovery

Task<> Snapshots::recover() {
  auto page = co_await store_.snapshots(Scope::everybody(), {}, {.limit = kEverything, .offset = 0});
  if (!page) {
    log::error("snapshots cannot be read", {{"error", page.error().message}});
    co_return;
  }
  for (Snapshot& row : page->snapshots) {
    bool settled = row.status.state == SnapshotState::ready || row.status.state == SnapshotState::failed;
    if (!settled) tasks_.spawn(recover_row(std::move(row)));
  }
  for (runtime::Runtime* runtime : runtimes_.all()) tasks_.spawn(recover_strangers(*runtime));
}

Task<> Snapshots::recover_row(Snapshot row) {
  auto turn = co_await locks_.lock(row.id);
  runtime::Runtime& runtime = runtimes_.of(row.runtime);
  if (row.status.state == SnapshotState::creating)
    co_return co_await finish(row, co_await keep_patiently(runtime, row.id), true);
  while (true) {
    auto removed = co_await remove_now(row);
    if (removed) co_return;
    log::warn("cannot remove a snapshot, trying again", {{"id", row.id}, {"error", removed.error().message}});
    co_await io::sleep_for(std::chrono::seconds(5));
  }
}

// What a lost database knew: the record of its sandbox says whose it is.
Task<> Snapshots::recover_strangers(runtime::Runtime& runtime) {
  auto ids = co_await runtime.list_snapshots();
  if (!ids) co_return;  // away: its rows are all that is known
  for (const std::string& id : *ids) {
    auto turn = co_await locks_.lock(id);
    auto known = co_await store_.find_snapshot(Scope::everybody(), id);
    if (!known || *known) continue;
    auto kept = co_await keep_patiently(runtime, id);
    if (!kept) continue;
    auto source = from_record(kept->record);
    if (!source) {
      log::warn("a snapshot without a row and without a record is left alone: nobody knows whose it is",
                {{"id", id}, {"runtime", runtime.name()}, {"remedy", "remove it by hand"}});
      continue;
    }
    Snapshot row{.id = id, .owner = source->owner, .sandbox_id = source->id};
    row.created = clock_.now();
    row.runtime = source->runtime.empty() ? std::string(runtime.name()) : source->runtime;
    row.status = {SnapshotState::creating, reason::kAccepted, "", row.created};
    row.base.image = co_await base_image_of(source->image);
    row.network = kept_network_of(kept->record).value_or(text_of_deny());
    log::warn("a snapshot without a row, made it again", {{"id", id}, {"owner", row.owner}});
    if (co_await store_.insert_snapshot(row)) co_await finish(std::move(row), std::move(kept), true);
  }
}

}  // namespace osb::server
