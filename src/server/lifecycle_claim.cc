// Claims. A sandbox that waits in a pool becomes somebody's: its row is made of the member's in one
// transaction, before anything of the caller's goes into it, and says Running before the client hears of it.
// One that never gets so far is removed, by this process or the next: it is nobody else's any more.

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::refuse;
using sandbox::Sandbox;
using sandbox::State;

// Outlives the request that asked for it.
struct Lifecycle::Claiming {
  explicit Claiming(const io::Executor& executor) : done(executor) {}
  io::Event done;
  Principal who;
  sandbox::CreateRequest request;
  sandbox::PoolMember member;
  std::vector<std::string> notes;
  std::function<void(Left)> settled;
  Claimed result{.made = refuse({})};
};

Task<Lifecycle::Claimed> Lifecycle::claim(Principal who, sandbox::CreateRequest request,
                                          sandbox::PoolMember member, std::vector<std::string> notes,
                                          std::function<void(Left)> settled) {
  auto job = std::make_shared<Claiming>(executor_);
  job->who = std::move(who);
  job->request = std::move(request);
  job->member = std::move(member);
  job->notes = std::move(notes);
  job->settled = std::move(settled);
  tasks_.spawn(claim_job(job));
  co_await job->done.wait();
  co_return std::move(job->result);
}

Task<> Lifecycle::claim_job(std::shared_ptr<Claiming> job) {
  limit_life(job->request);
  Sandbox row = sandbox::new_sandbox(job->request.id, job->who, job->request, clock_.now());
  row.handle = job->member.handle;
  row.runtime = job->member.runtime;
  row.identity = job->member.identity;
  auto guard = co_await locks_.lock(row.id);
  job->result = co_await claim_locked(job, std::move(row));
  job->settled(job->result.left);
  job->done.set();
}

Task<Lifecycle::Claimed> Lifecycle::claim_locked(std::shared_ptr<Claiming> job, Sandbox row) {
  auto room = co_await store_.check_room();
  auto taken = room ? co_await store_.claim_pool_member(row) : Result<bool>(std::unexpected(room.error()));
  if (!taken) {
    log::error("cannot store a claimed sandbox", {{"owner", row.owner}, {"error", taken.error().message}});
    co_return Claimed{.made = refuse(sandbox::start_failed_on_disk(taken.error())), .left = Left::untouched};
  }
  if (!*taken) co_return Claimed{.made = refuse(sandbox::not_found(row.id)), .left = Left::dead};
  runtime::Runtime& runtime = runtime_of(row);
  auto network = network_of(job->request);
  auto claim = claim_of(row, std::move(job->request));
  auto started = co_await claim_in_time(runtime, row.handle, std::move(claim), std::move(network));
  if (!started) {
    const Error& error = started.error().error;
    log::warn("sandbox not claimed", {{"id", row.id}, {"owner", row.owner}, {"error", error.message}});
    // It ended between its last look and this one; the caller has done nothing wrong.
    bool dead =
        started.error().kind == runtime::CreateFailure::Kind::step_failed && error.code == Code::not_found;
    co_await abandon(std::move(row));
    co_return Claimed{.made = refuse(to_failure(started.error())), .left = dead ? Left::dead : Left::used};
  }
  row.status = status_while(State::running, clock_.now());
  auto from = row.extensions.find(sandbox::kPoolExtension);
  std::vector<sandbox::Event> events{
      {row.created, "Created",
       (from == row.extensions.end() ? "taken ready" : "from pool " + from->second) + ", image " +
           row.image}};
  for (std::string& note : job->notes) events.push_back({row.created, "Warning", std::move(note)});
  if (auto stored = co_await store_running(row, std::move(events)); !stored) {
    log::error("cannot store a running sandbox, removing it",
               {{"id", row.id}, {"owner", row.owner}, {"error", stored.error().message}});
    co_await abandon(std::move(row));
    co_return Claimed{.made = refuse(sandbox::start_failed_on_disk(stored.error()))};
  }
  attend(row);
  log::info("sandbox claimed", {{"id", row.id}, {"owner", row.owner}, {"image", row.image}});
  co_return Claimed{.made = std::move(row)};
}

}  // namespace osb::server
