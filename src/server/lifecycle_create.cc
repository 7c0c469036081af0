// Create. The row is there before the runtime makes anything, and says Running before the client hears of it.

#include <algorithm>

#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/lifecycle_job.h"
#include "server/runtime_calls.h"
#include "server/volume_sizes.h"

namespace osb::server {

using sandbox::Reason;
using sandbox::refuse;
using sandbox::Sandbox;
using sandbox::State;

Task<Outcome<Sandbox>> Lifecycle::create(Principal who, sandbox::CreateRequest request) {
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(create_job(job, std::move(who), std::move(request)));
  co_await job->done.wait();
  co_return std::move(job->result);
}

Task<> Lifecycle::prepare_job(std::shared_ptr<Preparing> preparing, runtime::Runtime& runtime,
                              runtime::SandboxSpec spec) {
  preparing->result = co_await prepare_in_time(runtime, std::move(spec));
  preparing->done.set();
}

// A copy of a sandbox from before the limit may have more, or never end.
void Lifecycle::limit_life(sandbox::CreateRequest& request) const {
  if (longest_life_) request.timeout = std::min(request.timeout.value_or(*longest_life_), *longest_life_);
}

Task<> Lifecycle::create_job(std::shared_ptr<Job> job, Principal who, sandbox::CreateRequest request) {
  limit_life(request);
  Sandbox row =
      sandbox::new_sandbox(request.id.empty() ? new_uuid7() : request.id, who, request, clock_.now());
  row.handle = new_uuid4();
  runtime::Runtime* runtime = runtimes_.find(request.runtime);
  if (!runtime) co_return job->finish(refuse(sandbox::unknown_runtime(runtimes_.names())));
  row.runtime = runtime->name();
  auto preparing = std::make_shared<Preparing>(executor_);
  tasks_.spawn(prepare_job(preparing, *runtime, spec_of(row, request)));
  if (!preparing->done.is_set()) co_await io::race(preparing->done.wait(), io::sleep_for(held_));
  if (!preparing->done.is_set())
    co_return co_await finish_later(std::move(row), std::move(request), std::move(preparing), std::move(job));
  if (!preparing->result) co_return job->finish(refuse(to_failure(preparing->result.error())));
  auto guard = co_await locks_.lock(row.id);
  if (auto stored = co_await insert(row); !stored) co_return job->finish(refuse(std::move(stored.error())));
  runtime::Claim claim = claim_of(row, std::move(request));
  auto started = co_await start_locked(row, *runtime, std::move(*preparing->result), std::move(claim));
  // What was never announced need not be explained to anybody later.
  if (!started) co_await abandon(std::move(row));
  job->result = std::move(started);
  job->done.set();
}

Task<Outcome<>> Lifecycle::insert(Sandbox row) {
  // What little a full disk has left is for ends and deletes.
  auto stored = co_await store_.check_room();
  if (stored) stored = co_await store_.insert(row, {});
  if (stored) co_return Outcome<>();
  log::error("cannot store a new sandbox", {{"owner", row.owner}, {"error", stored.error().message}});
  co_return refuse(sandbox::start_failed_on_disk(stored.error()));
}

// Its row is there, Pending. After a failure the caller says what becomes of it.
Task<Outcome<Sandbox>> Lifecycle::start_locked(Sandbox row, runtime::Runtime& runtime,
                                               runtime::PreparedPtr prepared, runtime::Claim claim) {
  std::vector<sandbox::Volume> sized = sized_volumes(claim.record);
  auto identity = co_await start_in_time(runtime, std::move(prepared), std::move(claim));
  if (!identity) {
    log::warn("sandbox not created",
              {{"id", row.id}, {"owner", row.owner}, {"error", identity.error().error.message}});
    // Many things of a kernel can be out of space; whether it is the disk, the disk says.
    bool is_step = identity.error().kind == runtime::CreateFailure::Kind::step_failed;
    auto room = is_step ? co_await store_.check_room() : Result<void>();
    if (!room) co_return refuse(sandbox::start_failed_on_disk(room.error()));
    co_return refuse(to_failure(identity.error()));
  }
  row.identity = std::move(*identity);
  row.status = status_while(State::running, clock_.now());
  if (auto stored = co_await store_running(row); !stored) {
    log::error("cannot store a running sandbox, removing it",
               {{"id", row.id}, {"owner", row.owner}, {"error", stored.error().message}});
    co_return refuse(sandbox::start_failed_on_disk(stored.error()));
  }
  attend(row);
  log::info("sandbox running", {{"id", row.id}, {"owner", row.owner}, {"image", row.image}});
  auto warnings = co_await other_sizes(runtime, row.owner, std::move(sized));
  for (std::string& warning : warnings) {
    sandbox::Event event{row.status.changed, "Warning", std::move(warning)};
    keep_trying(row.id, co_await store_.note(row.id, {.event = std::move(event)}));
  }
  co_return row;
}

Task<Result<void>> Lifecycle::store_running(Sandbox row) {
  std::vector<sandbox::Event> events{{row.created, "Created", "from image " + row.image},
                                     {row.status.changed, "Running", row.status.message}};
  bool stored = CO_TRY(co_await store_.set_running(row.id, row.identity, row.status, std::move(events)));
  if (!stored) co_return fail(Code::not_found, "the row of sandbox " + row.id + " is gone");
  co_return Result<void>();
}

// A creation that failed leaves nothing in the runtime; destroying is for the case that it did. What cannot
// be destroyed now is tried again until it is.
Task<> Lifecycle::abandon(Sandbox row) {
  auto gone = co_await destroy_in_time(runtime_of(row), row.handle);
  if (gone) co_return keep_trying(row.id, co_await store_.note(row.id, {.removed = true}));
  log::error("cannot remove a failed sandbox, trying again later",
             {{"id", row.id}, {"owner", row.owner}, {"error", gone.error().message}});
  sandbox::Status stopping{State::stopping, Reason::deleted, "The creation failed.", clock_.now()};
  keep_trying(row.id, co_await store_.note(row.id, {.status = std::move(stopping)}));
  keep_removing(row.id, Reason::deleted, First::after_a_while);
}

}  // namespace osb::server
