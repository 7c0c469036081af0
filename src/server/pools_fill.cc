// Making members of pools, in the background: a task per pool that looks at its numbers whenever they may
// have changed.

#include <algorithm>

#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/pools_live.h"
#include "server/record.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::PoolMember;
using sandbox::refuse;

namespace {

constexpr io::Duration kFirstRest = std::chrono::seconds(1);
constexpr io::Duration kLongestRest = std::chrono::seconds(60);
// Deletes of claimed sandboxes are not told of: a pool that is full of them looks.
constexpr io::Duration kLookAgain = std::chrono::milliseconds(500);
// A server that makes sandboxes without a pause would never fill a pool: so long they go first.
constexpr io::Duration kLetPass = std::chrono::milliseconds(500);
constexpr io::Duration kPassStep = std::chrono::milliseconds(5);
// Whoever has just got one uses it first.
constexpr io::Duration kAfterClaim = std::chrono::milliseconds(25);
constexpr io::Duration kDiscardAgain = std::chrono::milliseconds(250);
constexpr io::Duration kDiscardMost = std::chrono::seconds(30);
constexpr int kReadAgain = 5;
constexpr io::Duration kReadPause = std::chrono::milliseconds(100);

}  // namespace

Task<> Pools::tend(LivePtr pool) {
  while (!pool->removed) {
    // A claim counts itself, and needs the processor more than who reads rows to find deleted ones.
    const auto now = std::chrono::steady_clock::now();
    if (now - last_claim_ >= kAfterClaim || now - pool->counted >= kLookAgain) co_await count_claimed(pool);
    pool->work.reset();
    if (pool->available() + pool->making + pool->adopting < pool->least_waiting()) pool->filling = true;
    if (pool->available() >= pool->most_waiting()) pool->filling = false;
    if (pool->has_too_many()) {
      MemberPtr member = pool->ready.front();
      pool->ready.pop_front();
      member->taken.set();
      co_await discard(member->row);
    } else if (pool->wants_more() && !pool->is_resting()) {
      co_await make(pool);
    } else {
      co_await rest(pool);
    }
  }
}

// Until there may be something to do.
Task<> Pools::rest(LivePtr pool) {
  io::Duration most = std::chrono::hours(1);
  if (pool->is_resting()) most = pool->retry_at - std::chrono::steady_clock::now();
  bool is_full = pool->total() >= pool->row.capacity.pool_max && pool->claimed > 0;
  if (is_full || pool->available() + pool->making + pool->adopting < pool->least_waiting())
    most = std::min(most, kLookAgain);
  co_await io::race(pool->work.wait(), io::sleep_for(std::max<io::Duration>(most, kPassStep)));
}

Task<> Pools::make(LivePtr pool) {
  struct Making {
    Live& pool;
    explicit Making(Live& p) : pool(p) { ++pool.making; }
    ~Making() { --pool.making; }
  };
  Outcome<> made;
  {
    Making making(*pool);
    PoolMember row{.handle = new_uuid4(), .id = new_uuid7(), .pool = pool->row.id, .created = clock_.now()};
    made = co_await make_one(pool, std::move(row));
  }
  if (made) {
    pool->failures = 0;
    pool->trouble.clear();
    pool->retry_at = {};
    co_return;
  }
  auto pause = kFirstRest;
  for (int i = 0; i < pool->failures && pause < kLongestRest; ++i) pause *= 2;
  pause = std::min(pause, kLongestRest);
  ++pool->failures;
  pool->trouble = made.error().code + ": " + made.error().message;
  pool->retry_at = std::chrono::steady_clock::now() + pause;
  log::warn("a pool cannot be filled, trying again later",
            {{"pool", pool->row.name}, {"owner", pool->row.owner}, {"error", pool->trouble}});
  pool->arrived.set();
}

// Whoever waits for this pool waits for a sandbox as well.
Task<> Pools::let_creates_pass(LivePtr pool) {
  const auto end = std::chrono::steady_clock::now() + kLetPass;
  auto is_busy = [this](auto now) { return creates_.running() > 0 || now - last_claim_ < kAfterClaim; };
  for (auto now = end - kLetPass; is_busy(now) && pool->waiters == 0 && !pool->removed && now < end;
       now = std::chrono::steady_clock::now())
    co_await io::sleep_for(kPassStep);
}

// A claim wakes whoever fills its pool, and needs the processor for what it is about.
Task<> Pools::let_claim_pass(LivePtr pool) {
  const auto end = std::chrono::steady_clock::now() + kAfterClaim;
  for (auto now = end - kAfterClaim;
       now - last_claim_ < kAfterClaim && pool->waiters == 0 && !pool->removed && now < end;
       now = std::chrono::steady_clock::now())
    co_await io::sleep_for(kPassStep);
}

// Its image comes before its turn: others need not wait for that.
Task<Outcome<>> Pools::make_one(LivePtr pool, PoolMember row) {
  if (!pool->shape) co_return refuse(pool->shape.error());
  co_await let_claim_pass(pool);
  sandbox::CreateRequest request = *pool->shape;
  Snapshots::Use use;
  if (!request.snapshot.empty())
    use = CO_TRY(co_await snapshots_.find_base(Principal::owner_named(pool->row.owner), request));
  // A claim brings its own policy, or none, and none would open what the snapshot's sandbox did not reach.
  if (request.network_policy && !pool->shape->network_policy) {
    co_return refuse(sandbox::unsupported_by_runtime(
        {Code::unsupported, 0,
         "the snapshot of this pool has a network policy; put a networkPolicy into the template"}));
  }
  runtime::Runtime* runtime = runtimes_.find(request.runtime);
  if (!runtime) co_return refuse(sandbox::unknown_runtime(runtimes_.names()));
  row.runtime = runtime->name();
  sandbox::Sandbox like;
  like.id = row.id;
  like.handle = row.handle;
  like.owner = pool->row.owner;
  auto spec = spec_of(like, request);
  spec.life.reset();
  auto prepared = co_await prepare_in_time(*runtime, std::move(spec));
  if (!prepared) co_return refuse(to_failure(prepared.error()));
  auto turn = co_await making_.lock("");
  co_await let_creates_pass(pool);
  if (pool->removed) co_return Outcome<>();
  auto stored = co_await store_.check_room();
  if (stored) stored = co_await store_.insert_pool_member(row);
  if (!stored) co_return refuse(sandbox::start_failed_on_disk(stored.error()));
  auto warm = co_await warm_in_time(*runtime, std::move(*prepared), waiting_record(row));
  if (!warm) {
    tasks_.spawn(discard(std::move(row)));
    co_return refuse(to_failure(warm.error()));
  }
  row.identity = std::move(warm->identity);
  row.warmth = std::move(warm->shape);
  auto noted = co_await store_.set_pool_member_warm(row);
  if (!noted || pool->removed) {
    tasks_.spawn(discard(std::move(row)));
    if (!noted) co_return refuse(sandbox::start_failed_on_disk(noted.error()));
    co_return Outcome<>();
  }
  put(pool, std::move(row));
  co_return Outcome<>();
}

void Pools::put(LivePtr pool, PoolMember row) {
  if (pool->removed) return tasks_.spawn(discard(std::move(row)));
  auto member = std::make_shared<Member>(executor_, std::move(row));
  pool->ready.push_back(member);
  pool->arrived.set();
  tasks_.spawn(watch(pool, member));
}

// Nobody has taken it, and it does not run any more.
Task<> Pools::watch(LivePtr pool, MemberPtr member) {
  runtime::Runtime& runtime = runtimes_.of(member->row.runtime);
  co_await io::race(wait_for_end(runtime, member->row.handle), member->taken.wait());
  if (member->taken.is_set()) co_return;
  std::erase(pool->ready, member);
  log::warn("a sandbox of a pool has ended while it waited", {{"pool", pool->row.name}});
  pool->work.set();
  co_await discard(member->row);
}

Task<> Pools::discard(PoolMember row) {
  for (io::Duration again = kDiscardAgain;; again = std::min(again * 2, kDiscardMost)) {
    auto gone = co_await destroy_in_time(runtimes_.of(row.runtime), row.handle);
    if (gone) {
      auto noted = co_await store_.remove_pool_member(row.handle);
      if (noted) co_return;
      gone = std::unexpected(std::move(noted.error()));
    }
    log::warn("cannot remove a sandbox of a pool, trying again",
              {{"handle", row.handle}, {"error", gone.error().message}});
    co_await io::sleep_for(again);
  }
}

// Recovery

void Pools::keep_ready(sandbox::Pool pool, sandbox::CreateRequest shape) {
  ready_ = add(std::move(pool), std::move(shape));
}

Task<> Pools::recover(Read read) {
  auto rows = co_await store_.pools();
  auto members = co_await store_.pool_members();
  // A moment's trouble is waited out, as for the rows of sandboxes.
  for (int again = 0; (!rows || !members) && again < kReadAgain; ++again) {
    co_await io::sleep_for(kReadPause);
    rows = co_await store_.pools();
    members = co_await store_.pool_members();
  }
  if (!rows || !members) {
    // Their members are left as they are: the next start may know them.
    log::error("pools cannot be read", {{"error", (rows ? members.error() : rows.error()).message}});
    co_return;
  }
  std::map<std::string, LivePtr> by_id;
  for (sandbox::Pool& row : *rows) {
    auto shape = read(row.shape);
    LivePtr pool = add(std::move(row), std::move(shape));
    by_id[pool->row.id] = pool;
  }
  if (ready_) by_id[ready_->row.id] = ready_;
  store::Everything stored = co_await store_.everything();
  for (const sandbox::SandboxPtr& row : stored.sandboxes) {
    auto pool = row->extensions.find(sandbox::kPoolExtension);
    if (pool != row->extensions.end()) claimed_[{row->owner, pool->second}].insert(row->id);
  }
  for (PoolMember& member : *members) {
    auto pool = by_id.find(member.pool);
    // Half made, or of a pool that is no more.
    if (pool == by_id.end() || member.identity.empty()) {
      tasks_.spawn(discard(std::move(member)));
    } else {
      ++pool->second->adopting;
      tasks_.spawn(adopt(pool->second, std::move(member)));
    }
  }
  for (const auto& [id, pool] : by_id) tasks_.spawn(tend(pool));
}

Task<> Pools::adopt(LivePtr pool, PoolMember row) {
  runtime::Runtime& runtime = runtimes_.of(row.runtime);
  for (io::Duration again = kDiscardAgain; !pool->removed; again = std::min(again * 2, kDiscardMost)) {
    runtime::Warm warm{.identity = row.identity, .shape = row.warmth};
    auto found = co_await runtime.adopt_warm(row.handle, std::move(warm));
    using Kind = runtime::Adoption::Kind;
    if (found.kind == Kind::unknown) {
      log::warn("nobody knows what a sandbox of a pool does, asking again",
                {{"pool", pool->row.name}, {"error", found.error.message}});
      co_await io::sleep_for(again);
      continue;
    }
    --pool->adopting;
    pool->work.set();
    // Nobody pauses one: what is paused has been in somebody's hands.
    if (found.kind == Kind::adopted && !found.paused) co_return put(pool, std::move(row));
    co_return co_await discard(std::move(row));
  }
  --pool->adopting;
  co_await discard(std::move(row));
}

}  // namespace osb::server
