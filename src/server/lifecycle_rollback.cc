// Rollback: another sandbox in the place of this one, over a snapshot. Which of the two counts is the handle
// in the row, which changes in one commit: before it the old one goes on untouched, after it the old one is a
// stranger, and recovery removes whichever the row does not name.

#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/lifecycle_job.h"
#include "server/record.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::refuse;
using sandbox::Sandbox;
using sandbox::State;

Task<Outcome<Sandbox>> Lifecycle::roll_back(Principal who, std::string id, sandbox::CreateRequest request) {
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(roll_back_job(job, Scope::of(who), std::move(id), std::move(request)));
  co_await job->done.wait();
  co_return std::move(job->result);
}

Task<> Lifecycle::roll_back_job(std::shared_ptr<Job> job, Scope scope, std::string id,
                                sandbox::CreateRequest request) {
  auto guard = co_await locks_.lock(id);
  auto row = co_await find_living(std::move(scope), std::move(id));
  job->result = row ? co_await roll_back_locked(**row, std::move(request))
                    : Outcome<Sandbox>(refuse(std::move(row.error())));
  job->done.set();
}

Task<Outcome<Sandbox>> Lifecycle::roll_back_locked(Sandbox row, sandbox::CreateRequest request) {
  if (row.status.state != State::running && row.status.state != State::paused)
    co_return refuse(sandbox::not_running(row.id, to_string(row.status.state), row.status.message));
  runtime::Runtime& runtime = runtime_of(row);
  const std::string before = row.handle;
  row.handle = new_uuid4();
  auto prepared = co_await prepare_in_time(runtime, spec_of(row, request));
  if (!prepared) co_return refuse(to_failure(prepared.error()));
  runtime::Claim claim = claim_of(row, std::move(request));
  auto identity = co_await start_in_time(runtime, std::move(*prepared), std::move(claim));
  if (!identity) {
    (void)co_await destroy_in_time(runtime, row.handle);
    co_return refuse(to_failure(identity.error()));
  }
  row.identity = std::move(*identity);
  row.status = status_while(State::running, clock_.now());
  sandbox::Event event{row.status.changed, "RolledBack", "to an earlier snapshot; its processes are new"};
  auto stored = co_await store_.replace(row.id, row.handle, row.identity, row.status, {std::move(event)});
  if (!stored || !*stored) {
    (void)co_await destroy_in_time(runtime, row.handle);
    if (!stored) co_return refuse(sandbox::internal_error(stored.error()));
    co_return refuse(sandbox::not_found(row.id));
  }
  forget(row.id);
  attend(row);
  auto gone = co_await destroy_in_time(runtime, before);
  if (!gone)
    log::error("what a rollback replaced is not removed; the next start does it",
               {{"id", row.id}, {"handle", before}, {"error", gone.error().message}});
  log::info("sandbox rolled back", {{"id", row.id}, {"owner", row.owner}});
  co_return row;
}

}  // namespace osb::server
