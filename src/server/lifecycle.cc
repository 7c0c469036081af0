#include "server/lifecycle.h"

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/record.h"

namespace osb::server {

using sandbox::SandboxPtr;
using sandbox::Verb;

Lifecycle::Lifecycle(io::Executor executor, store::Repository& store, runtime::Runtimes& runtimes,
                     const Clock& clock)
    : executor_(executor),
      store_(store),
      runtimes_(runtimes),
      clock_(clock),
      locks_(executor),
      edits_(executor),
      ends_stored_(executor),
      uses_(executor),
      expiry_timer_(executor),
      tasks_(executor) {}

Task<> Lifecycle::close() {
  stop_listening();
  co_await drain();
  co_await tasks_.close();
}

// What has happened counts whether or not the disk takes it; the store tries again until it does.
void Lifecycle::keep_trying(const std::string& id, const Result<void>& noted) {
  if (!noted) log::warn("not on the disk yet, trying again", {{"id", id}, {"error", noted.error().message}});
}

Task<Outcome<SandboxPtr>> Lifecycle::get(Principal who, std::string id) {
  return find(Scope::of(who), std::move(id));
}

Task<Outcome<SandboxPtr>> Lifecycle::find(Scope scope, std::string id) {
  auto row = co_await store_.find(std::move(scope), id);
  if (!row) {
    log::error("cannot read a sandbox", {{"id", id}, {"error", row.error().message}});
    co_return sandbox::refuse(sandbox::internal_error(row.error()));
  }
  if (!*row) co_return sandbox::refuse(sandbox::not_found(id));
  co_return std::move(*row);
}

Task<Outcome<SandboxPtr>> Lifecycle::find_living(Scope scope, std::string id) {
  SandboxPtr row = CO_TRY(co_await find(std::move(scope), id));
  if (!allows(row->status.state, Verb::edit)) co_return sandbox::refuse(sandbox::not_found(id));
  co_return row;
}

// The row is what counts; this is for the day on which it is lost.
Task<> Lifecycle::write_record(std::string id) {
  auto row = co_await store_.find(Scope::everybody(), id);
  if (!row || !*row) co_return;
  runtime::Runtime& runtime = runtime_of(**row);
  // The row has no variables, volumes or hooks: an older record is better than one without them.
  auto recalled = co_await runtime.recall((*row)->handle);
  if (!recalled) {
    if (recalled.error().code != Code::not_found)
      log::warn("cannot read the record of a sandbox", {{"id", id}, {"error", recalled.error().message}});
    co_return;
  }
  auto env = environment_of(recalled->record);
  auto volumes = volumes_of(recalled->record).value_or(std::vector<sandbox::Volume>());
  std::string record = to_record(**row, env, volumes, hooks_of(recalled->record));
  if (auto network = kept_network_of(recalled->record)) record = with_network(std::move(record), *network);
  auto kept = co_await runtime.keep_record((*row)->handle, std::move(record));
  if (!kept && kept.error().code != Code::not_found)
    log::warn("cannot keep the record of a sandbox", {{"id", id}, {"error", kept.error().message}});
}

}  // namespace osb::server
