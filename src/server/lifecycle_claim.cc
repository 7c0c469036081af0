// Claims. A sandbox that waits in a pool becomes somebody's: its row is made of the member's in one
// transaction, when its entry process runs, or is on its way and cannot be refused, and before the client
// hears of it. One that never gets so far is removed, by this process or the next, which hears from execd
// that it was started: nobody else gets it.

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
  auto no_room = [](const Error& why, Left left) {
    return Claimed{.made = refuse(sandbox::start_failed_on_disk(why)), .left = left};
  };
  if (auto room = co_await store_.check_room(); !room) co_return no_room(room.error(), Left::untouched);
  auto network = network_of(job->request);
  auto claim = claim_of(row, std::move(job->request));
  // No deadline around it: whatever a runtime waits for has its own, and one that waits for nothing is done
  // before anything else gets its turn.
  auto started = co_await runtime_of(row).claim(row.handle, std::move(claim), std::move(network));
  if (!started) {
    const Error& error = started.error().error;
    log::warn("sandbox not claimed", {{"id", row.id}, {"owner", row.owner}, {"error", error.message}});
    // It ended between its last look and this one; the caller has done nothing wrong.
    bool dead =
        started.error().kind == runtime::CreateFailure::Kind::step_failed && error.code == Code::not_found;
    co_return Claimed{.made = refuse(to_failure(started.error())), .left = dead ? Left::dead : Left::spoilt};
  }
  row.status = status_while(State::running, clock_.now());
  auto from = row.extensions.find(sandbox::kPoolExtension);
  std::string source = from == row.extensions.end() ? "taken ready" : "from pool " + from->second;
  std::vector<sandbox::Event> events{{row.created, "Created", source + ", image " + row.image}};
  for (std::string& note : job->notes) events.push_back({row.created, "Warning", std::move(note)});
  events.push_back({row.status.changed, "Running", row.status.message});
  auto stored = co_await store_.claim_pool_member(row, std::move(events));
  if (!stored) {
    log::error("cannot store a claimed sandbox, removing it",
               {{"id", row.id}, {"owner", row.owner}, {"error", stored.error().message}});
    co_return no_room(stored.error(), Left::spoilt);
  }
  if (!*stored) co_return Claimed{.made = refuse(sandbox::not_found(row.id)), .left = Left::dead};
  attend(row);
  log::info("sandbox claimed", {{"id", row.id}, {"owner", row.owner}, {"image", row.image}});
  co_return Claimed{.made = std::move(row)};
}

}  // namespace osb::server
