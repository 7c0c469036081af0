// Recovery: what the rows say against what the runtime has. After a kill -9 at any instruction this brings
// both together: no sandbox is lost, none is left without a row.

#include <unordered_set>

#include "base/log.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"

namespace osb::server {

using store::State;

// Adopting waits for the runtime and for each sandbox; a thousand of them are not done one by one.
constexpr size_t kAtOnce = 16;

struct Lifecycle::Recovery {
  explicit Recovery(const io::Executor& executor) : done(executor) {}
  std::vector<store::Sandbox> rows;
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
  for (const store::Sandbox& row : rows) known.insert(row.id);

  const size_t workers = std::min(kAtOnce, rows.size());
  recovery->workers = workers;
  for (size_t i = 0; i < workers; ++i) tasks_.spawn(recover_some(recovery));
  if (workers > 0) co_await recovery->done.wait();

  size_t orphans = 0;
  for (std::string& id : found) {
    if (!listed || known.contains(id)) continue;
    ++orphans;
    auto gone = co_await destroy_in_time(runtime_, id);
    if (!gone)
      log::error("cannot remove a sandbox without a row", {{"id", id}, {"error", gone.error().message}});
  }
  log::info("recovered", {{"sandboxes", rows.size()}, {"orphans_removed", orphans}});
  co_return Result<void>();
}

Task<> Lifecycle::recover_some(std::shared_ptr<Recovery> recovery) {
  while (recovery->next < recovery->rows.size()) {
    const store::Sandbox& row = recovery->rows[recovery->next++];
    keep_trying(row.id, co_await recover_row(row));
  }
  if (--recovery->workers == 0) recovery->done.set();
}

Task<Result<void>> Lifecycle::recover_row(store::Sandbox row) {
  if (row.status.state == State::pending) {
    // Never announced to a client: its creation did not get to its end.
    log::warn("removing a half-made sandbox", {{"id", row.id}});
    co_await abandon(row.id);
    co_return Result<void>();
  }
  if (row.status.state == State::stopping) {
    co_return store_.note(row.id, {.expires = clock_.now()});  // the expiry timer finishes it
  }
  auto adopted = co_await runtime_.adopt(row.id, row.identity);
  if (!adopted) co_return store_end(row.id, adopted.error());
  tasks_.spawn(watch(row.id));
  log::info("sandbox adopted", {{"id", row.id}});
  co_return reconcile_pause(row, adopted->paused);
}

}  // namespace osb::server
