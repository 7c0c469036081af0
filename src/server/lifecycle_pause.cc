// Pause and resume. The kernel's freezer is the truth, rows follow it: after a kill -9 at any instruction
// recovery asks the runtime which of the two a sandbox is in. A pause counts once it is stored: one that was
// not is taken back, at once or by recovery.

#include "api/error_catalogue.h"
#include "base/log.h"
#include "server/lifecycle.h"
#include "server/lifecycle_job.h"

namespace osb::server {

using api::ApiResult;
using api::refuse;
using store::State;

namespace {

constexpr auto kSlow = std::chrono::milliseconds(5);

store::Status running(WallTime at) { return {State::running, "RUNNING", "The sandbox is running.", at}; }
store::Status paused(WallTime at) {
  return {State::paused, "PAUSED", "Every process of the sandbox is stopped.", at};
}

}  // namespace

Task<ApiResult<>> Lifecycle::pause(std::string id) {
  CO_TRY(find_living(id));
  if (const Error* why = unreachable(id)) co_return refuse(api::unreachable(id, *why));
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(pause_job(job, std::move(id)));
  co_await job->done.wait();
  if (!job->result) co_return refuse(std::move(job->result.error()));
  co_return ApiResult<>();
}

Task<ApiResult<>> Lifecycle::resume(std::string id) {
  CO_TRY(find_living(id));
  if (const Error* why = unreachable(id)) co_return refuse(api::unreachable(id, *why));
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(resume_job(job, std::move(id)));
  co_await job->done.wait();
  if (!job->result) co_return refuse(std::move(job->result.error()));
  co_return ApiResult<>();
}

Task<> Lifecycle::pause_job(std::shared_ptr<Job> job, std::string id) {
  auto guard = co_await locks_.lock(id);
  auto done = co_await pause_locked(std::move(id));
  if (done) job->result = store::Sandbox{};
  if (!done) job->result = refuse(std::move(done.error()));
  job->done.set();
}

Task<> Lifecycle::resume_job(std::shared_ptr<Job> job, std::string id) {
  auto guard = co_await locks_.lock(id);
  auto done = co_await resume_locked(std::move(id));
  if (done) job->result = store::Sandbox{};
  if (!done) job->result = refuse(std::move(done.error()));
  job->done.set();
}

Task<ApiResult<>> Lifecycle::pause_locked(std::string id) {
  store::SandboxPtr row = CO_TRY(find_living(id));
  if (row->status.state != State::running) {
    co_return refuse(api::not_running(id, to_string(row->status.state), row->status.message));
  }
  store::Status before = row->status;
  store::Status pausing{State::pausing, "PAUSING", "The processes of the sandbox are being stopped.",
                        clock_.now()};
  auto settled = std::make_shared<bool>(false);
  tasks_.spawn(note_slow(id, std::move(pausing), settled));
  auto done = co_await runtime_.pause(row->handle);
  *settled = true;
  Result<void> stored;
  if (!done) {
    log::warn("sandbox not paused", {{"id", id}, {"error", done.error().message}});
    // Also when the runtime is merely slow: what it may still stop must not stay so.
    if (done.error().code != Code::not_found) (void)co_await runtime_.resume(row->handle);
    stored = store_change(id, before, "");
    if (!stored) log::error("cannot store a state", {{"id", id}, {"error", stored.error().message}});
    // Its entry process has just ended; the end is about to be stored.
    if (done.error().code == Code::not_found)
      co_return refuse(api::not_running(id, "ending", "its entry process has ended"));
    if (done.error().code == Code::unsupported) co_return refuse(api::pause_unsupported(done.error()));
    co_return refuse(api::pause_failed(done.error()));
  }
  stored = store_change(id, paused(clock_.now()), "Paused");
  if (!stored) {
    log::error("cannot store a pause, taking it back", {{"id", id}, {"error", stored.error().message}});
    auto resumed = co_await runtime_.resume(row->handle);
    if (!resumed)
      log::error("a sandbox stays paused that should not", {{"id", id}, {"error", resumed.error().message}});
    if (auto back = store_change(id, before, ""); !back)
      log::error("cannot store a state", {{"id", id}, {"error", back.error().message}});
    co_return refuse(api::internal_error(stored.error()));
  }
  mark_paused(id);
  log::info("sandbox paused", {{"id", id}});
  co_return ApiResult<>();
}

Task<ApiResult<>> Lifecycle::resume_locked(std::string id) {
  store::SandboxPtr row = CO_TRY(find_living(id));
  State was = row->status.state;
  if (was != State::running && was != State::pausing && was != State::paused && was != State::resuming)
    co_return refuse(api::not_paused(id, to_string(was)));
  store::Status before = row->status;
  if (was == State::running) {
    // The row may be wrong, after a change that could not be stored; the runtime knows.
    auto was_paused = co_await runtime_.resume(row->handle);
    if (!was_paused || !*was_paused) co_return refuse(api::not_paused(id, to_string(was)));
    mark_resumed(id);
    log::warn("resumed a sandbox that was paused, though its row did not say so", {{"id", id}});
    co_return ApiResult<>();
  }
  store::Status resuming{State::resuming, "RESUMING", "The processes of the sandbox go on.", clock_.now()};
  auto settled = std::make_shared<bool>(false);
  tasks_.spawn(note_slow(id, std::move(resuming), settled));
  auto done = co_await runtime_.resume(row->handle);
  *settled = true;
  Result<void> stored;
  if (!done) {
    log::warn("sandbox not resumed", {{"id", id}, {"error", done.error().message}});
    stored = store_change(id, before, "");
    if (!stored) log::error("cannot store a state", {{"id", id}, {"error", stored.error().message}});
    if (done.error().code == Code::not_found) co_return refuse(api::not_paused(id, "ending"));
    co_return refuse(api::resume_failed(done.error()));
  }
  mark_resumed(id);
  stored = store_change(id, running(clock_.now()), "Resumed");
  if (!stored) co_return refuse(api::internal_error(stored.error()));
  log::info("sandbox resumed", {{"id", id}});
  co_return ApiResult<>();
}

// Most changes are over before anybody could see that they are under way; recovery needs no record of it.
Task<> Lifecycle::note_slow(std::string id, store::Status status, std::shared_ptr<bool> done) {
  co_await io::sleep_for(kSlow);
  if (*done) co_return;
  auto stored = store_change(id, std::move(status), "");
  if (!stored) log::error("cannot store a state", {{"id", id}, {"error", stored.error().message}});
}

// An event only for what has come to pass.
Result<void> Lifecycle::store_change(const std::string& id, store::Status status, std::string_view event) {
  if (event.empty()) {
    TRY(store_.sandboxes().set_status(id, status));
    return {};
  }
  auto transaction = TRY(store_.begin());
  TRY(store_.sandboxes().set_status(id, status));
  TRY(store_.events().add(id, {status.changed, std::string(event), status.message}));
  return transaction.commit();
}

Task<Result<void>> Lifecycle::reconcile_pause(store::Sandbox row, bool is_paused) {
  State was = row.status.state;
  if (is_paused && was != State::paused && was != State::pausing) {
    // Nobody was told that it is paused, or somebody wanted it to go on.
    log::warn("a sandbox is paused, though its row does not say so; it goes on", {{"id", row.id}});
    CO_TRY(co_await runtime_.resume(row.handle));
    is_paused = false;
  }
  if (is_paused) mark_paused(row.id);
  State is = is_paused ? State::paused : State::running;
  if (was == is) co_return Result<void>();
  log::info("the state of a sandbox follows its processes", {{"id", row.id}, {"state", to_string(is)}});
  store::Status status = is_paused ? paused(clock_.now()) : running(clock_.now());
  store::SandboxEvent event{status.changed, is_paused ? "Paused" : "Resumed", status.message};
  keep_trying(row.id, store_.note(row.id, {.status = std::move(status), .event = std::move(event)}));
  co_return Result<void>();
}

void Lifecycle::mark_paused(const std::string& id) {
  Stops& stops = stops_[id];
  if (!stops.since) stops.since = std::chrono::steady_clock::now();
}

void Lifecycle::mark_resumed(const std::string& id) {
  Stops& stops = stops_[id];
  if (!stops.since) return;
  stops.before += std::chrono::steady_clock::now() - *stops.since;
  stops.since.reset();
}

io::Duration Lifecycle::stopped_time(const std::string& id) const {
  auto found = stops_.find(id);
  if (found == stops_.end()) return {};
  const Stops& stops = found->second;
  return stops.since ? stops.before + (std::chrono::steady_clock::now() - *stops.since) : stops.before;
}

}  // namespace osb::server
