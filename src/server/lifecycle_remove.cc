// Remove: at somebody's request, or because the time is up. Kill first, note later.

#include <malloc.h>

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/lifecycle_job.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::Reason;
using sandbox::State;
using sandbox::Verb;

namespace {

constexpr auto kTrimDelay = std::chrono::milliseconds(300);  // many removals, one trim

}  // namespace

Task<Outcome<>> Lifecycle::remove(Principal who, std::string id) {
  Scope scope = Scope::of(who);
  CO_TRY(co_await find(scope, id));
  auto job = std::make_shared<Job>(executor_);
  tasks_.spawn(remove_job(job, std::move(scope), std::move(id)));
  co_await job->done.wait();
  co_return job->outcome();
}

Task<> Lifecycle::remove_job(std::shared_ptr<Job> job, Scope scope, std::string id) {
  auto guard = co_await locks_.lock(id);
  auto removed = co_await remove_locked(std::move(scope), id, Reason::deleted);
  if (removed) co_return job->finish({});
  log::error("cannot remove a sandbox, trying again later", {{"id", id}, {"error", removed.error().message}});
  keep_removing(id, Reason::deleted, First::after_a_while);
  job->finish(sandbox::refuse(sandbox::delete_failed(removed.error())));
}

Task<Result<void>> Lifecycle::remove_locked(Scope scope, std::string id, Reason reason) {
  sandbox::SandboxPtr row = CO_TRY(co_await store_.find(std::move(scope), id));
  if (!row) co_return Result<void>();
  if (auto move = transition(Verb::remove, row->status.state); move->during != row->status.state) {
    forget(id);
    // Whatever keeps this from being noted (it may be this very sandbox that has filled the disk), it must
    // not keep the sandbox alive.
    sandbox::Status stopping{move->during, reason, "The sandbox is being removed.", clock_.now()};
    keep_trying(id, co_await store_.note(id, {.status = std::move(stopping)}));
  } else {
    reason = row->status.reason;  // an unfinished removal keeps its cause
  }
  CO_TRY(co_await destroy_in_time(runtime_of(*row), row->handle));
  co_await note_removal(id, reason);
  log::info("sandbox removed", {{"id", id}, {"owner", row->owner}, {"reason", to_string(reason)}});
  if (!std::exchange(trims_later_, true)) tasks_.spawn(trim_later());
  co_return Result<void>();
}

// What is gone should not stay in this process's memory.
Task<> Lifecycle::trim_later() {
  co_await io::sleep_for(kTrimDelay);
  trims_later_ = false;
  ::malloc_trim(0);
}

Task<> Lifecycle::note_removal(std::string id, Reason reason) {
  bool expired = reason == Reason::expired;
  sandbox::Event event{clock_.now(), expired ? "Expired" : "Deleted",
                       expired ? "EXPIRED: its time was up" : "DELETED: at a client's request"};
  keep_trying(id, co_await store_.note(id, {.removed = true, .event = std::move(event)}));
}

}  // namespace osb::server
