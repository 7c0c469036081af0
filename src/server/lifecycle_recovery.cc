// Recovery: what the rows say against what the runtime has. After a kill -9 at any instruction this brings
// both together: no sandbox is lost, none is left without a row. Only what is known to have ended gets an
// end; about the rest the runtime is asked again. And nothing that runs is ended for want of a row: the
// runtime keeps a record beside each sandbox, from which the row is made again.

#include <unordered_set>

#include "base/ids.h"
#include "base/log.h"
#include "server/lifecycle.h"
#include "server/record.h"
#include "server/runtime_calls.h"

namespace osb::server {

using runtime::Adoption;
using store::State;

namespace {

// Adopting waits for the runtime and for each sandbox; a thousand of them are not done one by one.
constexpr size_t kAtOnce = 16;
constexpr io::Duration kAskAgainFirst = std::chrono::milliseconds(100);
constexpr io::Duration kAskAgainMost = std::chrono::seconds(30);
// For a sandbox about which nothing is known but that it runs: time for its owner to be found.
constexpr auto kStrangerLives = std::chrono::hours(24);

// What a damaged row says of its state is no more than that it could not be read.
bool has_ended(const store::Sandbox& row) {
  return (row.status.state == State::terminated || row.status.state == State::failed) &&
         row.status.reason != store::kDamaged;
}

store::Status running(WallTime at) { return {State::running, "RUNNING", "The sandbox is running.", at}; }

// Before there were handles, sandboxes bore their ids: UUIDs of version 7. Handles are of version 4.
bool is_old_name(const std::string& handle) { return is_uuid(handle) && handle[14] == '7'; }

store::Sandbox stranger(const std::string& handle, WallTime now) {
  store::Sandbox row;
  row.id = is_old_name(handle) ? handle : new_uuid7();
  row.handle = handle;
  row.image = "unknown";
  row.created = now;
  row.expires = now + kStrangerLives;
  return row;
}

}  // namespace

struct Lifecycle::Recovery {
  explicit Recovery(const io::Executor& executor) : done(executor) {}
  std::vector<store::Sandbox> rows;
  std::vector<std::string> strangers;  // handles
  size_t next = 0;
  size_t workers = 0;
  io::Event done;
};

Task<Result<void>> Lifecycle::recover() {
  std::vector<std::string> found =
      CO_TRY(in_context("list sandboxes of the runtime", co_await runtime_.list()));
  auto recovery = std::make_shared<Recovery>(executor_);
  auto& rows = recovery->rows;
  auto listed =
      store_.sandboxes().list({}, -1, 0, [&rows](const store::Sandbox& row) { rows.push_back(row); });
  // No error of the store ends this: what can be read is taken over. But then a sandbox without a row may
  // well have one.
  if (!listed) {
    log::error("not every row can be read; sandboxes without a row are kept",
               {{"rows", rows.size()}, {"error", listed.error().message}});
  }
  std::unordered_set<std::string> known;
  for (const store::Sandbox& row : rows) known.insert(row.handle);
  for (std::string& handle : found) {
    if (listed && !known.contains(handle)) recovery->strangers.push_back(std::move(handle));
  }

  const size_t workers = std::min(kAtOnce, rows.size() + recovery->strangers.size());
  recovery->workers = workers;
  for (size_t i = 0; i < workers; ++i) tasks_.spawn(recover_some(recovery));
  if (workers > 0) co_await recovery->done.wait();
  log::info("recovered", {{"sandboxes", rows.size()}, {"without_row", recovery->strangers.size()}});
  co_return Result<void>();
}

Task<> Lifecycle::recover_some(std::shared_ptr<Recovery> recovery) {
  const size_t rows = recovery->rows.size();
  while (recovery->next < rows + recovery->strangers.size()) {
    size_t index = recovery->next++;
    if (index < rows) {
      co_await recover_row(recovery->rows[index]);
    } else {
      co_await recover_stranger(recovery->strangers[index - rows]);
    }
  }
  if (--recovery->workers == 0) recovery->done.set();
}

Task<> Lifecycle::recover_row(store::Sandbox row) {
  if (row.status.state == State::pending) {
    // Never announced to a client: its creation did not get to its end.
    log::warn("removing a half-made sandbox", {{"id", row.id}});
    co_return co_await abandon(std::move(row));
  }
  if (row.status.state == State::stopping) co_return keep_removing(row.id, row.status.reason, First::now);
  std::string id = row.id;
  auto settled = co_await adopt_row(std::move(row));
  if (settled) co_return;
  log::warn("nobody knows what a sandbox does, asking again",
            {{"id", id}, {"error", settled.error().message}});
  unreachable_[id] = std::move(settled.error());
  tasks_.spawn(adopt_later(std::move(id)));
}

// An error leaves everything as it is.
Task<Result<void>> Lifecycle::adopt_row(store::Sandbox row) {
  auto found = co_await runtime_.adopt(row.handle, row.identity);
  if (found.kind == Adoption::Kind::unknown) co_return std::unexpected(std::move(found.error));
  if (found.kind == Adoption::Kind::ended) {
    keep_trying(row.id, store_end(row.id, found.end));
    co_return Result<void>();
  }
  // One whose end is stored but not settled is settled by its watcher.
  if (!has_ended(row)) CO_TRY(co_await reconcile_pause(row, found.paused));
  tasks_.spawn(watch(row.id, row.handle));
  log::info("sandbox adopted", {{"id", row.id}});
  co_return Result<void>();
}

Task<> Lifecycle::adopt_later(std::string id) {
  for (io::Duration again = kAskAgainFirst;; again = std::min(again * 2, kAskAgainMost)) {
    co_await io::sleep_for(again);
    auto guard = co_await locks_.lock(id);
    auto row = store_.sandboxes().find(id);
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

Task<> Lifecycle::recover_stranger(std::string handle) {
  auto recalled = co_await runtime_.recall(handle);
  if (!recalled) {
    // The next start asks again.
    log::error("cannot find out about a sandbox without a row",
               {{"handle", handle}, {"error", recalled.error().message}});
    co_return;
  }
  if (recalled->identity.empty()) {
    log::info("removing what is left of a sandbox without a row", {{"handle", handle}});
    auto gone = co_await destroy_in_time(runtime_, handle);
    if (!gone)
      log::error("cannot remove a sandbox without a row",
                 {{"handle", handle}, {"error", gone.error().message}});
    co_return;
  }
  auto read = from_record(recalled->record);
  bool is_its_own = read && read->handle == handle;
  store::Sandbox row = is_its_own ? std::move(*read) : stranger(handle, clock_.now());
  row.identity = std::move(recalled->identity);
  row.status = running(clock_.now());
  log::warn(is_its_own ? "a sandbox runs without a row, made it again from its record"
                       : "a sandbox runs without a row and without a record, keeping it for a day",
            {{"id", row.id}, {"handle", handle}});
  if (auto stored = insert_again(row); !stored) {
    log::error("cannot store a sandbox that runs without a row",
               {{"id", row.id}, {"error", stored.error().message}});
    co_return;
  }
  co_await recover_row(std::move(row));
}

Result<void> Lifecycle::insert_again(const store::Sandbox& row) {
  auto transaction = TRY(store_.begin());
  TRY(store_.sandboxes().insert(row));
  TRY(store_.events().add(row.id, {row.status.changed, "Recovered", "its row was lost and made again"}));
  return transaction.commit();
}

}  // namespace osb::server
