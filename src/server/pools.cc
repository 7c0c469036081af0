#include "server/pools.h"

#include <algorithm>

#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/pools_live.h"

namespace osb::server {

using sandbox::CreateRequest;
using sandbox::PoolMember;
using sandbox::PoolView;
using sandbox::refuse;
using sandbox::Sandbox;

namespace {

std::string lock_of(const Principal& who, const std::string& name) { return who.owner + " " + name; }

// What the claimer says over what the template says.
CreateRequest merged(const CreateRequest& shape, CreateRequest claim) {
  CreateRequest out = shape;
  out.id = std::move(claim.id);
  out.pool = std::move(claim.pool);
  out.timeout = claim.timeout;
  if (!claim.entrypoint.empty()) out.entrypoint = std::move(claim.entrypoint);
  for (auto& [name, value] : claim.env) {
    std::erase_if(out.env, [&](const auto& pair) { return pair.first == name; });
    out.env.emplace_back(name, std::move(value));
  }
  if (claim.metadata) {
    if (!out.metadata) out.metadata.emplace();
    for (auto& [key, value] : *claim.metadata) out.metadata->insert_or_assign(key, value);
  }
  for (auto& [key, value] : claim.extensions) out.extensions.insert_or_assign(key, value);
  if (!claim.hooks.empty()) out.hooks = std::move(claim.hooks);
  if (!out.pool.empty()) out.extensions.insert_or_assign(sandbox::kPoolExtension, out.pool);
  return out;
}

// What the claimer asked for and does not get; "" when that is nothing.
std::string ignored(const CreateRequest& shape, const CreateRequest& claim) {
  std::string what;
  if (!claim.image.empty() && claim.image != shape.image) what = "image";
  if (!claim.limits_text.empty() && claim.limits_text != shape.limits_text)
    what.append(what.empty() ? "" : " and ").append("resourceLimits");
  if (claim.extensions.contains(sandbox::kPullPolicyExtension) && what.empty()) what = "the pull policy";
  if (what.empty()) return what;
  return what + " of the request: ignored, the sandbox has the shape of its pool";
}

// Whether a create asks for no more than the server's own pool has.
bool fits(const CreateRequest& shape, const CreateRequest& request) {
  return request.pool.empty() && request.image == shape.image && request.snapshot.empty() &&
         request.limits_text == shape.limits_text && request.volumes.empty() && !request.network_policy &&
         !request.image_auth && request.platform.empty() && !request.read_only_root && !request.shm_bytes &&
         (request.runtime.empty() || request.runtime == shape.runtime) &&
         !request.extensions.contains(sandbox::kPullPolicyExtension);
}

}  // namespace

Pools::Pools(io::Executor executor, Parts parts)
    : executor_(executor),
      store_(parts.store),
      runtimes_(parts.runtimes),
      lifecycle_(parts.lifecycle),
      snapshots_(parts.snapshots),
      creates_(parts.creates),
      clock_(parts.clock),
      making_(executor),
      changes_(executor),
      tasks_(executor) {}

Task<> Pools::close() { co_await tasks_.close(); }

Pools::LivePtr Pools::add(sandbox::Pool row, Outcome<CreateRequest> shape) {
  auto pool = std::make_shared<Live>(executor_, std::move(row), std::move(shape));
  if (!pool->row.owner.empty()) pools_[pool->key()] = pool;
  return pool;
}

Task<Outcome<Pools::LivePtr>> Pools::find(const Principal& who, const std::string& name) {
  auto found = pools_.find({who.owner, name});
  if (who.owner.empty() || found == pools_.end()) co_return refuse(sandbox::pool_not_found(name));
  co_return found->second;
}

Task<> Pools::count_claimed(LivePtr pool) {
  pool->counted = std::chrono::steady_clock::now();
  auto found = claimed_.find(pool->key());
  if (found == claimed_.end()) co_return;
  std::vector<std::string> gone;
  for (const std::string& id : std::set(found->second)) {
    auto row = co_await store_.find(Scope::everybody(), id);
    if (row && *row == nullptr && !under_way_.contains(id)) gone.push_back(id);
  }
  auto& ids = claimed_[pool->key()];
  for (const std::string& id : gone) ids.erase(id);
  pool->claimed = static_cast<int64_t>(ids.size());
}

Task<PoolView> Pools::view(LivePtr pool) {
  co_await count_claimed(pool);
  PoolView out{.pool = pool->row, .status = {}};
  out.status.allocated = pool->claimed;
  out.status.available = pool->available();
  out.status.pending = pool->making + pool->adopting;
  out.status.total = pool->total();
  out.status.message = pool->trouble;
  if (pool->is_resting()) {
    auto left = pool->retry_at - std::chrono::steady_clock::now();
    out.status.retry_at = clock_.now() + std::chrono::duration_cast<std::chrono::microseconds>(left);
  }
  co_return out;
}

Task<Outcome<PoolView>> Pools::create(Principal who, sandbox::Pool row, CreateRequest shape) {
  auto turn = co_await changes_.lock(lock_of(who, row.name));
  runtime::Runtime* runtime = runtimes_.find(shape.runtime);
  if (!runtime) co_return refuse(sandbox::unknown_runtime(runtimes_.names()));
  if (!runtime->capabilities().pools)
    co_return refuse(sandbox::pools_unsupported(runtime->capabilities().pools.why));
  if (pools_.contains({who.owner, row.name})) co_return refuse(sandbox::pool_exists(row.name));
  auto own = std::ranges::count_if(pools_, [&](const auto& one) { return one.first.first == who.owner; });
  if (static_cast<size_t>(own) >= kMostPools) co_return refuse(sandbox::too_many_pools(kMostPools));
  row.id = new_uuid4();
  row.owner = who.owner;
  row.created = clock_.now();
  auto room = co_await store_.check_room();
  auto stored = room ? co_await store_.insert_pool(row) : Result<bool>(std::unexpected(room.error()));
  if (!stored) co_return refuse(sandbox::internal_error(stored.error()));
  if (!*stored) co_return refuse(sandbox::pool_exists(row.name));
  log::info("pool created", {{"pool", row.name}, {"owner", row.owner}});
  LivePtr pool = add(std::move(row), std::move(shape));
  tasks_.spawn(tend(pool));
  co_return co_await view(pool);
}

Task<Outcome<PoolView>> Pools::get(Principal who, std::string name) {
  co_return co_await view(CO_TRY(co_await find(who, name)));
}

Task<Outcome<std::vector<PoolView>>> Pools::list(Principal who) {
  std::vector<LivePtr> own;
  for (const auto& [key, pool] : pools_) {
    if (key.first == who.owner) own.push_back(pool);
  }
  std::vector<PoolView> out;
  for (const LivePtr& pool : own) out.push_back(co_await view(pool));
  co_return out;
}

Task<Outcome<PoolView>> Pools::resize(Principal who, std::string name, sandbox::PoolCapacity capacity) {
  auto turn = co_await changes_.lock(lock_of(who, name));
  LivePtr pool = CO_TRY(co_await find(who, name));
  auto stored = co_await store_.set_pool_capacity(who.owner, name, capacity);
  if (!stored) co_return refuse(sandbox::internal_error(stored.error()));
  pool->row.capacity = capacity;
  pool->filling = true;
  pool->work.set();
  co_return co_await view(pool);
}

// The row goes first: members of a pool that is no more are removed, by this process or the next.
Task<Outcome<>> Pools::remove(Principal who, std::string name) {
  auto turn = co_await changes_.lock(lock_of(who, name));
  LivePtr pool = CO_TRY(co_await find(who, name));
  auto stored = co_await store_.remove_pool(who.owner, name);
  if (!stored) co_return refuse(sandbox::internal_error(stored.error()));
  pools_.erase(pool->key());
  pool->removed = true;
  pool->work.set();
  pool->arrived.set();
  for (const MemberPtr& member : std::exchange(pool->ready, {})) {
    member->taken.set();
    tasks_.spawn(discard(member->row));
  }
  log::info("pool removed", {{"pool", name}, {"owner", who.owner}});
  co_return Outcome<>();
}

// Without a suspension between finding a member and taking it: nobody else gets the same.
Task<Outcome<Pools::MemberPtr>> Pools::take(LivePtr pool) {
  struct Waiter {
    Live& pool;
    explicit Waiter(Live& p) : pool(p) { ++pool.waiters; }
    ~Waiter() { --pool.waiters; }
  };
  const std::string& name = pool->row.name;
  const auto give_up = std::chrono::steady_clock::now() + patience_;
  while (pool->ready.empty()) {
    co_await count_claimed(pool);
    if (!pool->ready.empty()) break;
    if (pool->removed) co_return refuse(sandbox::pool_not_found_on_create(name));
    if (pool->is_resting())
      co_return refuse(sandbox::pool_exhausted(name, "none could be made: " + pool->trouble));
    if (pool->making + pool->adopting == 0 && pool->total() >= pool->row.capacity.pool_max)
      co_return refuse(sandbox::pool_exhausted(name, "poolMax sandboxes of it are in use"));
    auto left = give_up - std::chrono::steady_clock::now();
    if (left <= left.zero())
      co_return refuse(sandbox::pool_exhausted(name, "those that are being made are not ready yet"));
    Waiter waiter(*pool);
    pool->work.set();
    pool->arrived.reset();
    co_await io::race(pool->arrived.wait(), io::sleep_for(left));
  }
  MemberPtr member = pool->ready.front();
  pool->ready.pop_front();
  member->taken.set();
  last_claim_ = std::chrono::steady_clock::now();
  pool->work.set();
  co_return member;
}

Task<Outcome<Sandbox>> Pools::claim(Principal who, CreateRequest request) {
  auto found = pools_.find({who.owner, request.pool});
  if (who.owner.empty() || found == pools_.end())
    co_return refuse(sandbox::pool_not_found_on_create(request.pool));
  LivePtr pool = found->second;
  while (true) {
    MemberPtr member = CO_TRY(co_await take(pool));
    auto claimed = co_await claim_from(pool, who, request, std::move(member));
    if (claimed.left != Lifecycle::Left::dead) co_return std::move(claimed.made);
  }
}

Task<Outcome<std::optional<Sandbox>>> Pools::take_ready(Principal who, CreateRequest request) {
  LivePtr pool = ready_;
  if (!pool || !pool->shape || !fits(*pool->shape, request)) co_return std::nullopt;
  while (!pool->ready.empty()) {
    MemberPtr member = CO_TRY(co_await take(pool));
    auto claimed = co_await claim_from(pool, who, request, std::move(member));
    if (claimed.left == Lifecycle::Left::dead) continue;
    if (!claimed.made) co_return refuse(std::move(claimed.made.error()));
    co_return std::move(*claimed.made);
  }
  co_return std::nullopt;
}

Task<Lifecycle::Claimed> Pools::claim_from(LivePtr pool, Principal who, CreateRequest request,
                                           MemberPtr member) {
  const CreateRequest& shape = *pool->shape;  // a pool without one has no members
  std::vector<std::string> notes;
  if (std::string note = ignored(shape, request); !note.empty()) notes.push_back(std::move(note));
  request = merged(shape, std::move(request));
  if (request.id.empty()) request.id = member->row.id.empty() ? new_uuid7() : member->row.id;
  // Counted from now on; what has no row is forgotten only when this is over.
  const std::string id = request.id;
  if (!pool->row.owner.empty()) {
    claimed_[pool->key()].insert(id);
    under_way_.insert(id);
    ++pool->claimed;
  }
  // Also when whoever asked has gone meanwhile.
  auto settle = [this, pool, member, id](Lifecycle::Left left) {
    under_way_.erase(id);
    if (left == Lifecycle::Left::untouched) put(pool, member->row);
    if (left == Lifecycle::Left::spoilt || left == Lifecycle::Left::dead) tasks_.spawn(discard(member->row));
    pool->work.set();
  };
  co_return co_await lifecycle_.claim(std::move(who), std::move(request), member->row, std::move(notes),
                                      std::move(settle));
}

}  // namespace osb::server
