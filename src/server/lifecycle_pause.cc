// Pause and resume. The kernel's freezer is the truth, rows follow it: after a kill -9 at any instruction
// recovery asks the runtime which of the two a sandbox is in. A pause counts once it is stored: one that was
// not is taken back, at once or by recovery.

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/lifecycle_job.h"

namespace osb::server {

using sandbox::Reason;
using sandbox::refuse;
using sandbox::SandboxPtr;
using sandbox::State;
using sandbox::Status;
using sandbox::Verb;

namespace {

constexpr auto kSlow = std::chrono::milliseconds(5);

// Of both kinds: at somebody's request, and because nobody uses it. The word for the second outlives a
// restart.
Status status_of_pause(State state, Reason why, WallTime since) {
  Status status = status_while(state, since);
  if (why != Reason::idle) return status;
  status.reason = why;
  status.message += " Nobody used it for a while; the next request to one of its ports wakes it.";
  return status;
}

}  // namespace

Task<Outcome<>> Lifecycle::pause(Principal who, std::string id) {
  return change_living(std::move(who), std::move(id), &Lifecycle::pause_locked);
}

Task<Outcome<>> Lifecycle::resume(Principal who, std::string id) {
  return change_living(std::move(who), std::move(id), &Lifecycle::resume_locked);
}

Task<Outcome<>> Lifecycle::change_living(Principal who, std::string id, Change change) {
  Scope scope = Scope::of(who);
  CO_TRY(co_await find_living(scope, id));
  if (const Error* why = unreachable(id)) co_return refuse(sandbox::unreachable(id, *why));
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(change_job(job, std::move(scope), std::move(id), change));
  co_await job->done.wait();
  co_return job->outcome();
}

Task<> Lifecycle::change_job(std::shared_ptr<Job> job, Scope scope, std::string id, Change change) {
  auto guard = co_await locks_.lock(id);
  job->finish(co_await (this->*change)(std::move(scope), std::move(id)));
}

Task<Outcome<>> Lifecycle::pause_locked(Scope scope, std::string id) {
  SandboxPtr row = CO_TRY(co_await find_living(std::move(scope), id));
  auto move = transition(Verb::pause, row->status.state);
  if (row->status.state == State::paused && row->status.reason == Reason::idle) {
    // It stands still already; from now on because somebody wants that, and no use wakes it.
    auto stored = co_await store_change(id, status_while(State::paused, clock_.now()), "Paused");
    if (!stored) co_return refuse(sandbox::internal_error(stored.error()));
    uses_.set_asleep(id, Uses::Now::awake);
    co_return Outcome<>();
  }
  if (!move) co_return refuse(sandbox::not_running(id, to_string(row->status.state), row->status.message));
  co_return co_await stop_locked(std::move(row), Reason::paused);
}

// A sandbox that runs.
Task<Outcome<>> Lifecycle::stop_locked(SandboxPtr row, Reason why) {
  const std::string id = row->id;
  runtime::Runtime& runtime = runtime_of(*row);
  if (const auto& ability = runtime.capabilities().pause; !ability)
    co_return refuse(sandbox::pause_unsupported({Code::unsupported, 0, ability.why}));
  auto settled = std::make_shared<bool>(false);
  tasks_.spawn(note_slow(id, status_of_pause(State::pausing, why, clock_.now()), settled));
  auto done = co_await runtime.pause(row->handle);
  *settled = true;
  if (!done) {
    log::warn("sandbox not paused", {{"id", id}, {"owner", row->owner}, {"error", done.error().message}});
    // Also when the runtime is merely slow: what it may still stop must not stay so.
    if (done.error().code != Code::not_found) (void)co_await runtime.resume(row->handle);
    co_await set_quietly(id, row->status);
    // Its entry process has just ended; the end is about to be stored.
    if (done.error().code == Code::not_found)
      co_return refuse(sandbox::not_running(id, "ending", "its entry process has ended"));
    if (done.error().code == Code::unsupported) co_return refuse(sandbox::pause_unsupported(done.error()));
    if (done.error().code == Code::unavailable) co_return refuse(sandbox::unreachable(id, done.error()));
    co_return refuse(sandbox::pause_failed(done.error()));
  }
  auto stored = co_await store_change(id, status_of_pause(State::paused, why, clock_.now()), "Paused");
  if (!stored) {
    log::error("cannot store a pause, taking it back", {{"id", id}, {"error", stored.error().message}});
    auto resumed = co_await runtime.resume(row->handle);
    if (!resumed)
      log::error("a sandbox stays paused that should not", {{"id", id}, {"error", resumed.error().message}});
    co_await set_quietly(id, row->status);
    co_return refuse(sandbox::internal_error(stored.error()));
  }
  stops_.paused(id);
  log::info("sandbox paused", {{"id", id}, {"owner", row->owner}, {"reason", to_string(why)}});
  co_return Outcome<>();
}

Task<Outcome<>> Lifecycle::resume_locked(Scope scope, std::string id) {
  SandboxPtr row = CO_TRY(co_await find_living(std::move(scope), id));
  State was = row->status.state;
  auto move = transition(Verb::resume, was);
  if (!move) co_return refuse(sandbox::not_paused(id, to_string(was)));
  runtime::Runtime& runtime = runtime_of(*row);
  if (move->during == was && move->after == was) {
    // The row says that it runs; the runtime knows.
    auto was_paused = co_await runtime.resume(row->handle);
    if (!was_paused && was_paused.error().code == Code::unavailable)
      co_return refuse(sandbox::unreachable(id, was_paused.error()));
    if (!was_paused || !*was_paused) co_return refuse(sandbox::not_paused(id, to_string(was)));
    stops_.resumed(id);
    uses_.set_asleep(id, Uses::Now::awake);
    log::warn("resumed a sandbox that was paused, though its row did not say so",
              {{"id", id}, {"owner", row->owner}});
    co_return Outcome<>();
  }
  auto settled = std::make_shared<bool>(false);
  tasks_.spawn(note_slow(id, status_while(move->during, clock_.now()), settled));
  auto done = co_await runtime.resume(row->handle);
  *settled = true;
  if (!done) {
    log::warn("sandbox not resumed", {{"id", id}, {"owner", row->owner}, {"error", done.error().message}});
    co_await set_quietly(id, row->status);
    if (done.error().code == Code::not_found) co_return refuse(sandbox::not_paused(id, "ending"));
    if (done.error().code == Code::unavailable) co_return refuse(sandbox::unreachable(id, done.error()));
    co_return refuse(sandbox::resume_failed(done.error()));
  }
  stops_.resumed(id);
  auto stored = co_await store_change(id, status_while(move->after, clock_.now()), "Resumed");
  uses_.set_asleep(id, Uses::Now::awake);
  if (!stored) co_return refuse(sandbox::internal_error(stored.error()));
  log::info("sandbox resumed", {{"id", id}, {"owner", row->owner}});
  co_return Outcome<>();
}

// Most changes are over before anybody could see that they are under way; recovery needs no record of it.
Task<> Lifecycle::note_slow(std::string id, Status status, std::shared_ptr<bool> done) {
  co_await io::sleep_for(kSlow);
  if (!*done) co_await set_quietly(std::move(id), std::move(status));
}

// A state that nobody has to be told of.
Task<> Lifecycle::set_quietly(std::string id, Status status) {
  auto stored = co_await store_change(id, std::move(status), "");
  if (!stored) log::error("cannot store a state", {{"id", id}, {"error", stored.error().message}});
}

// An event only for what has come to pass.
Task<Result<void>> Lifecycle::store_change(std::string id, Status status, std::string event) {
  std::vector<sandbox::Event> events;
  if (!event.empty()) events.push_back({status.changed, std::move(event), status.message});
  CO_TRY(co_await store_.set_status(std::move(id), std::move(status), std::move(events)));
  co_return Result<void>();
}

Task<Result<void>> Lifecycle::reconcile_pause(sandbox::Sandbox row, bool is_paused) {
  State was = row.status.state;
  if (is_paused && was != State::paused && was != State::pausing) {
    // Nobody was told that it is paused, or somebody wanted it to go on.
    log::warn("a sandbox is paused, though its row does not say so; it goes on",
              {{"id", row.id}, {"owner", row.owner}});
    CO_TRY(co_await runtime_of(row).resume(row.handle));
    is_paused = false;
  }
  if (is_paused) stops_.paused(row.id);
  State is = is_paused ? State::paused : State::running;
  if (was == is) co_return Result<void>();
  log::info("the state of a sandbox follows its processes",
            {{"id", row.id}, {"owner", row.owner}, {"state", to_string(is)}});
  Status status =
      is_paused ? status_of_pause(is, row.status.reason, clock_.now()) : status_while(is, clock_.now());
  sandbox::Event event{status.changed, is_paused ? "Paused" : "Resumed", status.message};
  keep_trying(row.id, co_await store_.note(row.id, {.status = std::move(status), .event = std::move(event)}));
  co_return Result<void>();
}

}  // namespace osb::server
