// What is made of snapshots at once: forks of a sandbox, and a sandbox put back to an earlier state.

#include "api/resource_limits.h"
#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/kept_policy.h"
#include "server/record.h"
#include "server/snapshots.h"

namespace osb::server {

using sandbox::CreateRequest;
using sandbox::refuse;
using sandbox::Sandbox;
using sandbox::Snapshot;
using sandbox::SnapshotState;

namespace {

constexpr size_t kAtOnce = 8;
constexpr char kReadOnlyRoot[] = "opensandbox.extensions.read-only-root";
// By which people call a sandbox (osb run --name). A call by a name that several have is refused.
constexpr char kName[] = "name";

}  // namespace

// What the sandbox was made with, as far as that is known.
Task<Outcome<CreateRequest>> Snapshots::request_like(const Sandbox& row, std::optional<std::string> record) {
  CreateRequest request;
  request.runtime = row.runtime;
  request.image = row.image;
  request.entrypoint = row.entrypoint;
  request.metadata = row.metadata;
  request.extensions = row.extensions;
  request.extensions.erase(sandbox::kPoolExtension);  // a copy is of no pool
  request.platform = row.platform;
  request.limits_text = row.limits;
  auto limits = api::parse_limits(row.limits);
  if (!limits) co_return refuse(sandbox::cannot_be_copied(row.id, limits.error().message));
  request.limits = *limits;
  if (row.expires)
    request.timeout = std::chrono::duration_cast<std::chrono::seconds>(*row.expires - row.created);
  auto read_only = row.extensions.find(kReadOnlyRoot);
  if (auto shm = row.extensions.find(sandbox::kShmExtension); shm != row.extensions.end())
    request.shm_bytes = api::parse_memory(shm->second);
  request.read_only_root = read_only != row.extensions.end() && read_only->second == "true";
  if (!record) {
    auto recalled = co_await runtimes_.of(row.runtime).recall(row.handle);
    if (!recalled) co_return refuse(sandbox::unreachable(row.id, recalled.error()));
    record = std::move(recalled->record);
  }
  auto volumes = volumes_of(*record);
  if (!volumes) co_return refuse(sandbox::cannot_be_copied(row.id, volumes.error().message));
  request.volumes = std::move(*volumes);
  auto env = environment_of(*record);
  if (!env && !row.env_names.empty())
    co_return refuse(sandbox::cannot_be_copied(
        row.id,
        "its environment was not kept, because it is too long or the sandbox is of an older version"));
  if (env) request.env = std::move(*env);
  auto hooks = hooks_of(*record);
  if (!hooks)
    co_return refuse(
        sandbox::cannot_be_copied(row.id, "its lifecycle hooks were not kept, because they are too long"));
  request.hooks = std::move(*hooks);
  // As it is now, and not as it was asked for: whoever tightened it meant its copies, too.
  auto network = co_await runtimes_.of(row.runtime).network_of(row.handle);
  if (!network) co_return refuse(sandbox::unreachable(row.id, network.error()));
  if (*network) {
    request.network_policy = to_request(std::move(**network));
    co_return request;
  }
  std::string rests = CO_TRY(co_await policy_that_rests(row));
  if (!rests.empty()) {
    auto policy = policy_from(rests);
    if (!policy) co_return refuse(sandbox::cannot_be_copied(row.id, policy.error().message));
    request.network_policy = std::move(*policy);
  }
  co_return request;
}

// Goes on when its client goes away.
struct Snapshots::Forking {
  explicit Forking(const io::Executor& executor) : done(executor), made_all(executor) {}
  Principal who;
  CreateRequest request;
  size_t left = 0, workers = 0;
  Forks made = {};
  std::optional<sandbox::Failure> failure = {};
  Outcome<Forks> outcome = Forks();
  io::Event done, made_all;
};

Task<Outcome<Snapshots::Forks>> Snapshots::fork(Principal who, std::string sandbox_id, int64_t count) {
  auto forking = std::make_shared<Forking>(executor_);
  forking->who = std::move(who);
  tasks_.spawn(fork_job(forking, std::move(sandbox_id), count));
  co_await forking->done.wait();
  co_return std::move(forking->outcome);
}

Task<> Snapshots::fork_job(std::shared_ptr<Forking> forking, std::string sandbox_id, int64_t count) {
  forking->outcome = co_await fork_now(forking, std::move(sandbox_id), count);
  forking->done.set();
}

Task<> Snapshots::fork_some(std::shared_ptr<Forking> forking) {
  while (forking->left > 0 && !forking->failure) {
    --forking->left;
    auto made = co_await lifecycle_.create(forking->who, forking->request);
    if (made)
      forking->made.push_back(std::move(*made));
    else
      forking->failure = std::move(made.error());
  }
  if (--forking->workers == 0) forking->made_all.set();
}

// A snapshot for as long as something is made of it, of which no client knows: a server that starts meanwhile
// finds it on its way out.
Task<Outcome<Snapshots::Passing>> Snapshots::insert_passing(const Sandbox& source, std::string what_for) {
  Snapshot row{.id = new_uuid4(), .owner = source.owner, .sandbox_id = source.id};
  row.created = clock_.now();
  row.runtime = source.runtime;
  row.status = {SnapshotState::deleting, sandbox::snapshot_reason::kPassing, std::move(what_for),
                row.created};
  row.base.image = co_await base_image_of(source.image);
  auto turn = co_await locks_.lock(row.id);
  auto stored = co_await store_.check_room();
  if (stored) stored = co_await store_.insert_snapshot(row);
  if (!stored) co_return refuse(sandbox::snapshot_failed(stored.error()));
  co_return Passing{std::move(row), std::move(turn)};
}

Task<Outcome<Snapshots::Forks>> Snapshots::fork_now(std::shared_ptr<Forking> forking, std::string sandbox_id,
                                                    int64_t count) {
  const Principal& who = forking->who;
  CO_TRY(co_await find_source(who, sandbox_id));
  auto guard = co_await lifecycle_.hold(sandbox_id);
  sandbox::SandboxPtr source = CO_TRY(co_await find_source(who, sandbox_id));
  CreateRequest request = CO_TRY(co_await request_like(*source, {}));
  if (request.metadata) request.metadata->erase(kName);
  Passing passing = CO_TRY(co_await insert_passing(*source, "For a fork."));
  Snapshot& row = passing.row;
  // The copies live no longer than this boot, so what they are made of need not either.
  auto kept =
      co_await capture_and_keep(row, std::move(guard), source->handle, &runtime::Runtime::keep_for_now);
  if (kept) {
    row.base.image_id = std::move(kept->image_id);
    row.base.layers = std::move(kept->layers);
    request.base = row.base;
    forking->request = std::move(request);
    forking->left = static_cast<size_t>(count);
    forking->workers = std::min(kAtOnce, forking->left);
    for (size_t i = forking->workers; i > 0; --i) tasks_.spawn(fork_some(forking));
    co_await forking->made_all.wait();
  }
  // What they use of it stays with them.
  tasks_.spawn(forget_passing(std::move(passing)));
  if (!kept) co_return refuse(sandbox::snapshot_failed(kept.error()));
  if (!forking->failure) co_return std::move(forking->made);
  for (const Sandbox& one : forking->made) (void)co_await lifecycle_.remove(who, one.id);
  co_return refuse(std::move(*forking->failure));
}

Task<> Snapshots::forget_passing(Passing passing) {
  auto removed = co_await remove_now(passing.row);
  if (!removed)
    log::warn("a snapshot that was needed for a moment is not removed; the next start does it",
              {{"id", passing.row.id}, {"error", removed.error().message}});
}

Task<Outcome<Sandbox>> Snapshots::roll_back(Principal who, std::string sandbox_id, std::string snapshot_id) {
  sandbox::SandboxPtr source = CO_TRY(co_await find_source(who, sandbox_id));
  CreateRequest request = CO_TRY(co_await request_like(*source, {}));
  std::string image = std::exchange(request.image, "");
  request.snapshot = std::move(snapshot_id);
  auto policy = std::exchange(request.network_policy, std::nullopt);
  Use use = CO_TRY(co_await find_base(who, request));
  // It goes back in its files alone.
  request.network_policy = std::move(policy);
  if (request.base->image != co_await base_image_of(image))
    co_return refuse(sandbox::snapshot_of_another_image(request.snapshot, sandbox_id));
  request.image = std::move(image);
  co_return co_await lifecycle_.roll_back(std::move(who), std::move(sandbox_id), std::move(request));
}

// Of one that was made from a snapshot: what that was made over.
Task<std::string> Snapshots::base_image_of(std::string image) {
  std::string_view below = sandbox::snapshot_of_image(image);
  if (below.empty()) co_return image;
  auto found = co_await store_.find_snapshot(Scope::everybody(), std::string(below));
  co_return found && *found ? (*found)->base.image : image;
}

}  // namespace osb::server
