// Recovery: what the rows say against what the runtimes have. After a kill -9 at any instruction this brings
// both together: no sandbox is lost, none is left without a row. Only what is known to have ended gets an
// end; about the rest the runtime is asked again. And nothing that runs is ended for want of a row: the
// runtime keeps a record beside each sandbox, from which the row is made again.
//
// Each runtime is recovered by itself. One that does not answer keeps nobody else waiting: its rows stay as
// they are, requests for them get 503, and it is asked for its list until it gives one.

#include <map>
#include <unordered_set>

#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/record.h"
#include "server/runtime_calls.h"

namespace osb::server {

using runtime::Adoption;
using sandbox::Reason;
using sandbox::Sandbox;
using sandbox::State;

namespace {

// Adopting waits for the runtime and for each sandbox; a thousand of them are not done one by one.
constexpr size_t kAtOnce = 16;
constexpr io::Duration kAskAgainFirst = std::chrono::milliseconds(100);
constexpr io::Duration kAskAgainMost = std::chrono::seconds(5);
constexpr io::Duration kAskRuntimeMost = std::chrono::seconds(1);
constexpr auto kListLimit = std::chrono::seconds(30);
constexpr int kReadAgain = 5;
constexpr io::Duration kReadPause = std::chrono::milliseconds(100);
// How long a start waits for runtimes besides the standard one.
constexpr io::Duration kOthersPatience = std::chrono::seconds(2);
// For a sandbox about which nothing is known but that it runs: time for its owner to be found.
constexpr auto kStrangerLives = std::chrono::hours(24);

// What a damaged row says of its state is no more than that it could not be read.
bool has_ended(const Sandbox& row) {
  return (row.status.state == State::terminated || row.status.state == State::failed) &&
         row.status.reason != Reason::damaged;
}

// A client was told of a sandbox that waits for its image; see lifecycle_pending.cc.
bool was_announced(const Sandbox& row) { return row.status.changed != row.created; }

// Whether there should be processes of it.
bool is_alive(const Sandbox& row) {
  return !has_ended(row) && row.status.state != State::pending && row.status.state != State::stopping;
}

// Before there were handles, sandboxes bore their ids: UUIDs of version 7. Handles are of version 4.
bool is_old_name(const std::string& handle) { return is_uuid(handle) && handle[14] == '7'; }

Sandbox row_of(runtime::Inherited from) {
  Sandbox row;
  row.id = std::move(from.id);
  row.owner = sandbox::kDefaultOwner;
  row.image = std::move(from.image);
  row.platform = std::move(from.platform);
  row.entrypoint = std::move(from.entrypoint);
  row.metadata = std::move(from.metadata);
  for (const auto& [name, value] : from.env) row.env_names.push_back(name);
  row.created = from.created;
  row.expires = from.expires;
  return row;
}

Sandbox stranger(const std::string& handle, WallTime now) {
  Sandbox row;
  row.id = is_old_name(handle) ? handle : new_uuid7();
  row.owner = sandbox::kDefaultOwner;
  row.handle = handle;
  row.image = "unknown";
  row.created = now;
  row.expires = now + kStrangerLives;
  return row;
}

}  // namespace

// Of one runtime.
struct Lifecycle::Recovery {
  Recovery(const io::Executor& executor, runtime::Runtime& runtime_)
      : runtime(runtime_), done(executor), answered(executor) {}
  runtime::Runtime& runtime;
  std::vector<Sandbox> rows;  // of the start: what came later is nobody's to recover
  bool rows_complete = true;
  std::vector<std::string> strangers;  // handles
  size_t next = 0;
  size_t workers = 0;
  io::Event done;      // by the workers
  io::Event answered;  // everything is done, or the runtime is away
};

Task<> Lifecycle::recover() {
  listen();
  std::map<runtime::Runtime*, std::shared_ptr<Recovery>> recoveries;
  auto of = [&](runtime::Runtime& runtime) -> Recovery& {
    auto& recovery = recoveries[&runtime];
    if (!recovery) recovery = std::make_shared<Recovery>(executor_, runtime);
    return *recovery;
  };
  for (runtime::Runtime* runtime : std::vector(runtimes_.all())) of(*runtime);
  store::Everything stored = co_await store_.everything();
  // A row that is not read now is looked after by nobody until the next start, so a moment's trouble is
  // waited out. Also what is called damage: SQLite says that of a page which the disk did not give it.
  for (int again = 0; stored.error && again < kReadAgain; ++again) {
    co_await io::sleep_for(kReadPause);
    stored = co_await store_.everything();
  }
  for (const sandbox::SandboxPtr& row : stored.sandboxes) of(runtime_of(*row)).rows.push_back(*row);
  // No error of the store ends this: what can be read is taken over. But then a sandbox without a row may
  // well have one.
  if (stored.error) {
    log::error("not every row can be read; sandboxes without a row are kept",
               {{"rows", stored.sandboxes.size()}, {"error", stored.error->message}});
  }
  for (auto& [runtime, recovery] : recoveries) {
    recovery->rows_complete = !stored.error;
    mark_unreachable(*recovery, {Code::unavailable, 0, "its runtime has not answered yet"});
    tasks_.spawn(recover_runtime(recovery));
  }
  co_await recoveries.at(&runtimes_.standard())->answered.wait();
  auto give_up = std::chrono::steady_clock::now() + kOthersPatience;
  for (auto& [runtime, recovery] : recoveries) {
    auto left = give_up - std::chrono::steady_clock::now();
    if (left > left.zero() && !recovery->answered.is_set())
      co_await io::race(recovery->answered.wait(), io::sleep_for(left));
  }
}

Task<> Lifecycle::recover_runtime(std::shared_ptr<Recovery> recovery) {
  std::string name(recovery->runtime.name());
  std::vector<std::string> found;
  for (io::Duration again = kAskAgainFirst;; again = std::min(again * 2, kAskRuntimeMost)) {
    auto listed = co_await io::with_deadline(kListLimit, "list sandboxes", recovery->runtime.list());
    if (listed) {
      found = std::move(*listed);
      break;
    }
    Error away = std::move(listed.error()).in("runtime " + name);
    if (!recovery->answered.is_set()) {
      log::error("a runtime is away; its sandboxes are kept as they are, and it is asked again",
                 {{"runtime", name}, {"sandboxes", recovery->rows.size()}, {"error", away.message}});
    }
    mark_unreachable(*recovery, away);
    recovery->answered.set();
    co_await io::sleep_for(again);
  }
  // Rows are read after the list: what was made while it was awaited has a row by now, and is no stranger.
  std::unordered_set<std::string> known;
  // Those that wait in pools first: one that is claimed meanwhile is found among the sandboxes.
  auto waiting = co_await store_.pool_members();
  if (waiting) {
    for (const sandbox::PoolMember& member : *waiting) known.insert(member.handle);
  }
  store::Everything now = co_await store_.everything();
  for (const sandbox::SandboxPtr& row : now.sandboxes) known.insert(row->handle);
  for (const Sandbox& row : recovery->rows) known.insert(row.handle);
  bool complete = !now.error && waiting && recovery->rows_complete;
  for (std::string& handle : found) {
    if (complete && !known.contains(handle)) recovery->strangers.push_back(std::move(handle));
  }
  co_await recover_all(recovery);
  log::info(
      "recovered",
      {{"runtime", name}, {"sandboxes", recovery->rows.size()}, {"without_row", recovery->strangers.size()}});
  recovery->answered.set();
}

void Lifecycle::mark_unreachable(const Recovery& recovery, const Error& why) {
  for (const Sandbox& row : recovery.rows) {
    if (is_alive(row)) unreachable_[row.id] = why;
  }
}

Task<> Lifecycle::recover_all(std::shared_ptr<Recovery> recovery) {
  const size_t workers = std::min(kAtOnce, recovery->rows.size() + recovery->strangers.size());
  recovery->workers = workers;
  for (size_t i = 0; i < workers; ++i) tasks_.spawn(recover_some(recovery));
  if (workers > 0) co_await recovery->done.wait();
}

Task<> Lifecycle::recover_some(std::shared_ptr<Recovery> recovery) {
  const size_t rows = recovery->rows.size();
  while (recovery->next < rows + recovery->strangers.size()) {
    size_t index = recovery->next++;
    if (index < rows) {
      co_await recover_row(recovery->rows[index]);
    } else {
      co_await recover_stranger(recovery->runtime, recovery->strangers[index - rows]);
    }
  }
  if (--recovery->workers == 0) recovery->done.set();
}

Task<> Lifecycle::recover_row(Sandbox row) {
  auto guard = co_await locks_.lock(row.id);
  // It may have been long since it was read. When it cannot be read now, what was read then counts.
  if (auto current = co_await store_.find(Scope::everybody(), row.id)) {
    if (!*current) co_return (void) unreachable_.erase(row.id);
    row = **current;
  }
  if (row.status.state == State::pending && was_announced(row)) {
    co_return co_await store_not_started(
        row, sandbox::start_failed({Code::unavailable, 0,
                                    "the server was restarted while the image came; what came of it is kept: "
                                    "create the sandbox again"}));
  }
  if (row.status.state == State::pending) {
    // Never announced to a client: its creation did not get to its end.
    log::warn("removing a half-made sandbox", {{"id", row.id}, {"owner", row.owner}});
    co_return co_await abandon(std::move(row));
  }
  if (row.status.state == State::stopping) co_return keep_removing(row.id, row.status.reason, First::now);
  std::string id = row.id;
  auto settled = co_await adopt_row(std::move(row));
  if (!settled) co_return lose_sight(id, std::move(settled.error()));
  unreachable_.erase(id);
}

void Lifecycle::lose_sight(const std::string& id, Error why) {
  log::warn("nobody knows what a sandbox does, asking again", {{"id", id}, {"error", why.message}});
  unreachable_[id] = std::move(why);
  tasks_.spawn(adopt_later(id));
}

// An error leaves everything as it is.
Task<Result<void>> Lifecycle::adopt_row(Sandbox row) {
  runtime::Runtime& runtime = runtime_of(row);
  auto found = co_await runtime.adopt(row.handle, row.identity);
  if (found.kind == Adoption::Kind::unknown) co_return std::unexpected(std::move(found.error));
  if (found.kind == Adoption::Kind::ended) {
    keep_trying(row.id, co_await store_end(row.id, std::move(found.end)));
    co_return Result<void>();
  }
  // Reconciling lets everything go on that is not to stay paused.
  bool asleep = found.paused && row.status.reason == Reason::idle;
  // One whose end is stored but not settled is settled by its watcher.
  if (!has_ended(row)) CO_TRY(co_await reconcile_pause(row, found.paused));
  attend(row, asleep ? Uses::Now::asleep : Uses::Now::awake);
  log::info("sandbox adopted", {{"id", row.id}, {"owner", row.owner}});
  co_return Result<void>();
}

Task<> Lifecycle::adopt_later(std::string id) {
  for (io::Duration again = kAskAgainFirst;; again = std::min(again * 2, kAskAgainMost)) {
    co_await io::sleep_for(again);
    auto guard = co_await locks_.lock(id);
    auto row = co_await store_.find(Scope::everybody(), id);
    if (!row) continue;
    bool wanted = *row != nullptr && (*row)->status.state != State::stopping;
    auto settled = wanted ? co_await adopt_row(**row) : Result<void>();
    if (!settled) {
      unreachable_[id] = std::move(settled.error());
      continue;
    }
    unreachable_.erase(id);
    co_return;
  }
}

const Error* Lifecycle::unreachable(const std::string& id) const {
  auto found = unreachable_.find(id);
  return found == unreachable_.end() ? nullptr : &found->second;
}

Task<> Lifecycle::recover_stranger(runtime::Runtime& runtime, std::string handle) {
  auto settled = co_await settle_stranger(runtime, handle);
  if (settled) co_return;
  log::error("a sandbox without a row is left as it is, trying again",
             {{"handle", handle}, {"error", settled.error().message}});
  tasks_.spawn(recover_stranger_later(runtime, std::move(handle)));
}

Task<> Lifecycle::recover_stranger_later(runtime::Runtime& runtime, std::string handle) {
  io::Duration again = kAskAgainFirst;
  do {
    co_await io::sleep_for(again);
    again = std::min(again * 2, kAskAgainMost);
  } while (!co_await settle_stranger(runtime, handle));
}

// What another server has made is this one's from the moment in which its record is kept. No row says yet how
// it should be, so it is left as it is found, paused or ended.
Task<Result<void>> Lifecycle::settle_inherited(runtime::Runtime& runtime, std::string handle,
                                               runtime::Recalled recalled) {
  Environment env = recalled.inherited->env;
  Sandbox row = row_of(std::move(*recalled.inherited));
  row.handle = handle;
  row.runtime = runtime.name();
  row.identity = std::move(recalled.identity);
  auto guard = co_await locks_.lock(row.id);
  if (CO_TRY(co_await store_.find(Scope::everybody(), row.id))) {
    log::warn("a container of another server is not taken over: there is a sandbox with its id",
              {{"id", row.id}});
    co_return Result<void>();
  }
  CO_TRY(co_await runtime.keep_record(handle, to_record(row, std::move(env))));
  auto found = co_await runtime.adopt(handle, row.identity);
  if (found.kind == Adoption::Kind::unknown) co_return std::unexpected(std::move(found.error));
  row.status = status_while(found.paused ? State::paused : State::running, clock_.now());
  sandbox::Event event{row.status.changed, "Adopted", "another server made it, this one has taken it over"};
  CO_TRY(co_await store_.insert(row, {std::move(event)}));
  log::info("a container of another server is taken over", {{"id", row.id}, {"owner", row.owner}});
  if (found.kind == Adoption::Kind::ended)
    keep_trying(row.id, co_await store_end(row.id, std::move(found.end)));
  else
    attend(row, Uses::Now::awake);
  co_return Result<void>();
}

// An error leaves everything as it is.
Task<Result<void>> Lifecycle::settle_stranger(runtime::Runtime& runtime, std::string handle) {
  auto recalled = CO_TRY(co_await runtime.recall(handle));
  if (recalled.identity.empty()) {
    log::info("removing what is left of a sandbox without a row", {{"handle", handle}});
    co_return co_await destroy_in_time(runtime, handle);
  }
  if (recalled.inherited) co_return co_await settle_inherited(runtime, handle, std::move(recalled));
  if (is_waiting_record(recalled.record)) {
    log::info("removing a sandbox that waits for a pool nobody knows", {{"handle", handle}});
    co_return co_await destroy_in_time(runtime, handle);
  }
  auto read = from_record(recalled.record);
  bool is_its_own = read && read->handle == handle;
  if (is_its_own) {
    auto other = CO_TRY(co_await store_.find(Scope::everybody(), read->id));
    if (other && other->handle != handle) {
      log::info("removing the half of a rollback that does not count",
                {{"id", read->id}, {"handle", handle}});
      co_return co_await destroy_in_time(runtime, handle);
    }
  }
  Sandbox row = is_its_own ? std::move(*read) : stranger(handle, clock_.now());
  if (row.runtime.empty()) row.runtime = runtime.name();
  row.identity = std::move(recalled.identity);
  row.status = status_while(State::running, clock_.now());
  log::warn(is_its_own ? "a sandbox runs without a row, made it again from its record"
                       : "a sandbox runs without a row and without a record, keeping it for a day",
            {{"id", row.id}, {"owner", row.owner}, {"handle", handle}});
  sandbox::Event event{row.status.changed, "Recovered", "its row was lost and made again"};
  CO_TRY(co_await store_.insert(row, {std::move(event)}));
  co_await recover_row(std::move(row));
  co_return Result<void>();
}

}  // namespace osb::server
