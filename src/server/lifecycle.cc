#include "server/lifecycle.h"

#include <malloc.h>

#include "api/error_catalogue.h"
#include "api/sandbox_json.h"
#include "base/ids.h"
#include "base/log.h"
#include "server/lifecycle_job.h"
#include "server/record.h"
#include "server/runtime_calls.h"

namespace osb::server {

using api::ApiResult;
using api::refuse;
using store::State;

namespace {

constexpr uint64_t kRemovalsPerTrim = 256;

std::unexpected<api::ApiError> store_failed(std::string_view what, const Error& error) {
  log::error(what, {{"error", error.message}});
  return refuse(api::internal_error(error));
}

}  // namespace

Lifecycle::Lifecycle(io::Executor executor, store::Store& store, runtime::Runtime& runtime,
                     const Clock& clock)
    : executor_(executor),
      store_(store),
      runtime_(runtime),
      clock_(clock),
      locks_(executor),
      ends_stored_(executor),
      expiry_timer_(executor),
      tasks_(executor) {}

Task<> Lifecycle::close() {
  co_await drain();
  co_await tasks_.close();
}

Task<ApiResult<store::Sandbox>> Lifecycle::create(api::CreatePlan plan) {
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(create_job(job, std::move(plan)));
  co_await job->done.wait();
  co_return std::move(job->result);
}

Task<> Lifecycle::create_job(std::shared_ptr<Job> job, api::CreatePlan plan) {
  store::Sandbox row = api::new_row(new_uuid7(), plan, clock_.now());
  row.handle = new_uuid4();
  auto guard = co_await locks_.lock(row.id);
  job->result = co_await create_locked(std::move(row), std::move(plan));
  job->done.set();
}

Task<ApiResult<store::Sandbox>> Lifecycle::create_locked(store::Sandbox row, api::CreatePlan plan) {
  runtime::SandboxSpec spec = spec_of(row, std::move(plan));
  spec.record = to_record(row);
  if (auto possible = runtime_.check(spec); !possible) co_return refuse(to_api_error(possible.error()));
  // What little a full disk has left is for ends and deletes.
  auto stored = store_.check_room();
  if (stored) stored = store_.sandboxes().insert(row);
  if (!stored) {
    log::error("cannot store a new sandbox", {{"error", stored.error().message}});
    co_return refuse(api::start_failed_on_disk(stored.error()));
  }
  auto identity = co_await create_in_time(runtime_, std::move(spec));
  if (!identity) {
    log::warn("sandbox not created", {{"id", row.id}, {"error", identity.error().error.message}});
    // Many things of a kernel can be out of space; whether it is the disk, the disk says.
    bool is_step = identity.error().kind == runtime::CreateFailure::Kind::step_failed;
    auto room = is_step ? store_.check_room() : Result<void>();
    co_await abandon(row);
    if (!room) co_return refuse(api::start_failed_on_disk(room.error()));
    co_return refuse(to_api_error(identity.error()));
  }
  row.identity = std::move(*identity);
  row.status = {State::running, "RUNNING", "The sandbox is running.", clock_.now()};
  if (stored = store_running(row); !stored) {
    log::error("cannot store a running sandbox, removing it", {{"error", stored.error().message}});
    co_await abandon(row);
    co_return refuse(api::start_failed_on_disk(stored.error()));
  }
  tasks_.spawn(watch(row.id, row.handle));
  log::info("sandbox running", {{"id", row.id}, {"image", row.image}});
  co_return row;
}

Result<void> Lifecycle::store_running(const store::Sandbox& row) {
  auto transaction = TRY(store_.begin());
  if (!TRY(store_.sandboxes().set_identity(row.id, row.identity, row.status))) {
    return fail(Code::not_found, "the row of sandbox " + row.id + " is gone");
  }
  TRY(store_.events().add(row.id, {row.created, "Created", "from image " + row.image}));
  TRY(store_.events().add(row.id, {row.status.changed, "Running", row.status.message}));
  return transaction.commit();
}

// A creation that failed leaves nothing in the runtime; destroying is for the case that it did. What cannot
// be destroyed now is tried again until it is.
Task<> Lifecycle::abandon(store::Sandbox row) {
  const std::string& id = row.id;
  auto gone = co_await destroy_in_time(runtime_, row.handle);
  if (gone) co_return keep_trying(id, store_.note(id, {.removed = true}));
  log::error("cannot remove a failed sandbox, trying again later",
             {{"id", id}, {"error", gone.error().message}});
  store::Status stopping{State::stopping, "DELETED", "The creation failed.", clock_.now()};
  keep_trying(id, store_.note(id, {.status = std::move(stopping)}));
  keep_removing(id, "DELETED", First::after_a_while);
}

// What has happened counts whether or not the disk takes it; the store tries again until it does.
void Lifecycle::keep_trying(const std::string& id, const Result<void>& noted) {
  if (!noted) log::warn("not on the disk yet, trying again", {{"id", id}, {"error", noted.error().message}});
}

ApiResult<store::SandboxPtr> Lifecycle::get(std::string_view id) {
  auto row = store_.sandboxes().find(id);
  if (!row) return store_failed("cannot read a sandbox", row.error());
  if (!*row) return refuse(api::sandbox_not_found(id));
  return std::move(*row);
}

// One that is being removed is gone for whoever wants to change it.
ApiResult<store::SandboxPtr> Lifecycle::find_living(std::string_view id) {
  store::SandboxPtr row = TRY(get(id));
  if (row->status.state == State::stopping) return refuse(api::sandbox_not_found(id));
  return row;
}

Task<ApiResult<>> Lifecycle::remove(std::string id) {
  CO_TRY(get(id));
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(remove_job(job, id));
  co_await job->done.wait();
  if (!job->result) co_return refuse(std::move(job->result.error()));
  co_return ApiResult<>();
}

Task<> Lifecycle::remove_job(std::shared_ptr<Job> job, std::string id) {
  auto guard = co_await locks_.lock(id);
  auto removed = co_await remove_locked(id, "DELETED");
  if (removed) {
    job->result = store::Sandbox{};
  } else {
    log::error("cannot remove a sandbox, trying again later",
               {{"id", id}, {"error", removed.error().message}});
    job->result = refuse(api::delete_failed(removed.error()));
    keep_removing(id, "DELETED", First::after_a_while);
  }
  job->done.set();
}

Task<Result<void>> Lifecycle::remove_locked(std::string id, std::string_view reason) {
  auto row = CO_TRY(store_.sandboxes().find(id));
  if (!row) co_return Result<void>();
  if (row->status.state != State::stopping) {
    forget(id);
    // Kill first, note later: whatever keeps this from being noted (it may be this very sandbox that has
    // filled the disk), it must not keep the sandbox alive.
    store::Status stopping{State::stopping, std::string(reason), "The sandbox is being removed.",
                           clock_.now()};
    keep_trying(id, store_.note(id, {.status = std::move(stopping)}));
  } else {
    reason = row->status.reason;  // an unfinished removal keeps its cause
  }
  CO_TRY(co_await destroy_in_time(runtime_, row->handle));
  note_removal(id, reason);
  log::info("sandbox removed", {{"id", id}, {"reason", reason}});
  // A fleet that is gone should not stay in this process's memory.
  if (++removals_ % kRemovalsPerTrim == 0) ::malloc_trim(0);
  co_return Result<void>();
}

void Lifecycle::note_removal(const std::string& id, std::string_view reason) {
  bool expired = reason == "EXPIRED";
  store::SandboxEvent event{clock_.now(), expired ? "Expired" : "Deleted",
                            expired ? "EXPIRED: its time was up" : "DELETED: at a client's request"};
  keep_trying(id, store_.note(id, {.removed = true, .event = std::move(event)}));
}

ApiResult<store::Sandbox> Lifecycle::patch_metadata(const std::string& id, const api::MetadataPatch& patch) {
  store::Sandbox row = *TRY(find_living(id));
  if (patch.empty()) return row;
  row.metadata = TRY(api::apply_patch(row.metadata, patch));
  auto stored = store_.sandboxes().set_metadata(id, row.metadata);
  if (!stored) return store_failed("cannot store metadata", stored.error());
  tasks_.spawn(write_record(id));
  return row;
}

// The row is what counts; this is for the day on which it is lost.
Task<> Lifecycle::write_record(std::string id) {
  auto row = store_.sandboxes().find(id);
  if (!row || !*row) co_return;
  auto kept = co_await runtime_.keep_record((*row)->handle, to_record(**row));
  if (!kept && kept.error().code != Code::not_found)
    log::warn("cannot keep the record of a sandbox", {{"id", id}, {"error", kept.error().message}});
}

ApiResult<WallTime> Lifecycle::renew(const std::string& id, WallTime expires) {
  store::SandboxPtr row = TRY(find_living(id));
  if (expires <= clock_.now()) return refuse(api::expiration_in_the_past());
  if (!row->expires) return refuse(api::no_expiration(id));
  auto stored = store_.sandboxes().set_expiry(id, expires);
  if (!stored) return store_failed("cannot store an expiry", stored.error());
  tasks_.spawn(write_record(id));
  if (expires < next_round_) expiry_timer_.cancel();
  return expires;
}

}  // namespace osb::server
