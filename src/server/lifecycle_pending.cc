// A creation whose image has to come from far away. The client is told of a Pending sandbox before its own
// patience ends; what becomes of it is seen in its state: Running, or Failed with the cause.

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/lifecycle_job.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::Reason;
using sandbox::Sandbox;
using sandbox::State;
using sandbox::Status;

namespace {

constexpr io::Duration kToldEvery = std::chrono::seconds(1);

Status pending_status(const std::string& what, WallTime since) {
  return {State::pending, Reason::starting,
          what.empty() ? "The sandbox is being started." : "The sandbox waits for its image: " + what + ".",
          since};
}

}  // namespace

Task<bool> Lifecycle::is_still_pending(std::string id) {
  auto row = co_await store_.find(Scope::everybody(), std::move(id));
  co_return row && *row && (*row)->status.state == State::pending;
}

// No lock is held while the image comes: whoever deletes the sandbox need not wait for it.
Task<> Lifecycle::finish_later(Sandbox row, sandbox::CreateRequest request,
                               std::shared_ptr<Preparing> preparing, std::shared_ptr<Job> job) {
  runtime::Runtime& runtime = runtime_of(row);
  row.status = pending_status(runtime.preparing(row.handle), clock_.now());
  if (auto stored = co_await insert(row); !stored)
    co_return job->finish(sandbox::refuse(std::move(stored.error())));
  auto started = std::make_shared<io::Event>(executor_);
  starting_[row.id] = started;
  log::info("sandbox waits for its image", {{"id", row.id}, {"owner", row.owner}, {"image", row.image}});
  job->result = row;
  job->done.set();
  co_await tell_progress(row.id, row.handle, runtime, preparing);
  auto guard = co_await locks_.lock(row.id);
  starting_.erase(row.id);
  if (co_await is_still_pending(row.id)) {
    if (!preparing->result) {
      co_await store_not_started(row, to_failure(preparing->result.error()));
    } else {
      runtime::Claim claim = claim_of(row, std::move(request));
      auto done = co_await start_locked(row, runtime, std::move(*preparing->result), std::move(claim));
      if (!done) co_await store_not_started(row, std::move(done.error()));
    }
  }
  started->set();
}

Task<> Lifecycle::tell_progress(std::string id, std::string handle, runtime::Runtime& runtime,
                                std::shared_ptr<Preparing> preparing) {
  std::string told = runtime.preparing(handle);
  while (!preparing->done.is_set()) {
    co_await io::race(preparing->done.wait(), io::sleep_for(kToldEvery));
    std::string now = runtime.preparing(handle);
    if (now.empty() || now == told) continue;
    told = std::move(now);
    auto guard = co_await locks_.lock(id);
    // Deleted: the pull goes on, for whoever asks next.
    if (!co_await is_still_pending(id)) co_return co_await preparing->done.wait();
    co_await set_quietly(id, pending_status(told, clock_.now()));
  }
}

// A client knows of it and has to be told why: it stays until it is deleted or expires.
Task<> Lifecycle::store_not_started(Sandbox row, sandbox::Failure why) {
  log::warn("sandbox not started", {{"id", row.id}, {"owner", row.owner}, {"error", why.message}});
  auto gone = co_await destroy_in_time(runtime_of(row), row.handle);
  if (!gone) {
    co_await abandon(std::move(row));
    co_return;
  }
  std::string sentence = why.code + ": " + why.message;
  sandbox::Event event{clock_.now(), "Failed", sentence};
  Status failed{State::failed, Reason::start_failed, std::move(sentence), clock_.now()};
  keep_trying(row.id, co_await store_.note(row.id, {.status = std::move(failed), .event = std::move(event)}));
}

Task<> Lifecycle::wait_started(std::string id, io::Duration limit) {
  auto found = starting_.find(id);
  if (found == starting_.end()) co_return;
  std::shared_ptr<io::Event> started = found->second;
  co_await io::race(started->wait(), io::sleep_for(limit));
}

}  // namespace osb::server
