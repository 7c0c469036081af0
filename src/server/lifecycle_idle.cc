// A sandbox that asked for it is paused when nobody uses it, and goes on when somebody does. Its status says
// which of the two kinds of pause it is in, so that a restart does not wake what a person has paused, nor
// forget that a use wakes the other.
//
// A use that comes while the sandbox is being paused waits for that, and wakes it: from the moment in which
// it is found idle it counts as asleep, and the lock keeps the two apart.

#include "base/log.h"
#include "base/strings.h"
#include "sandbox/create_request.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"

namespace osb::server {

using sandbox::Reason;
using sandbox::refuse;
using sandbox::SandboxPtr;
using sandbox::State;
using sandbox::Verb;

namespace {

std::optional<std::chrono::seconds> idle_limit_of(const sandbox::Sandbox& row) {
  if (row.extensions.empty()) return std::nullopt;
  auto found = row.extensions.find(sandbox::kIdleExtension);
  if (found == row.extensions.end()) return std::nullopt;
  auto seconds = parse_number<int64_t>(found->second);
  if (!seconds || *seconds <= 0) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

}  // namespace

void Lifecycle::attend(const sandbox::Sandbox& row, Uses::Now now) {
  if (auto limit = idle_limit_of(row)) uses_.watch(row.id, *limit, now);
  tasks_.spawn(watch(row.id, row.handle, runtime_of(row)));
}

Task<> Lifecycle::idle_loop() {
  while (true) {
    co_await uses_.wait();
    for (std::string& id : uses_.take_idle(std::chrono::steady_clock::now()))
      tasks_.spawn(sleep_job(std::move(id)));
  }
}

Task<> Lifecycle::sleep_job(std::string id) {
  auto guard = co_await locks_.lock(id);
  // Somebody may have come while others had the lock.
  if (!uses_.is_idle(id, std::chrono::steady_clock::now())) co_return;
  auto row = co_await store_.find(Scope::everybody(), id);
  if (!row || unreachable(id)) co_return uses_.touch(id);
  if (!*row || (*row)->status.state != State::running) co_return;  // a resume touches it
  if (!uses_.is_idle(id, std::chrono::steady_clock::now())) co_return;
  uses_.set_asleep(id, Uses::Now::asleep);
  auto slept = co_await stop_locked(*row, Reason::idle);
  if (slept) co_return;
  log::warn("an idle sandbox is not paused, trying again later",
            {{"id", id}, {"error", slept.error().message}});
  uses_.set_asleep(id, Uses::Now::awake);
}

Task<Outcome<>> Lifecycle::wake_locked(Scope scope, std::string id) {
  SandboxPtr row = CO_TRY(co_await find_living(scope, id));
  // Another use was faster.
  if (allows(row->status.state, Verb::reach)) co_return Outcome<>();
  if (row->status.state == State::paused && row->status.reason != Reason::idle)
    co_return refuse(sandbox::paused(id, to_string(row->status.state)));
  if (!allows(row->status.state, Verb::resume)) co_return Outcome<>();  // reach() says what it is
  co_return co_await resume_locked(std::move(scope), std::move(id));
}

std::optional<Lifecycle::Reached> Lifecycle::reach_now(const Principal& who, const std::string& id) {
  SandboxPtr row = store_.at_hand(Scope::of(who), id);
  if (row == nullptr || row->status.reason == Reason::idle || uses_.is_asleep(id) || unreachable(id) ||
      !allows(row->status.state, Verb::reach))
    return std::nullopt;
  return Reached{.row = std::move(row), .use = uses_.begin(id)};
}

Task<Outcome<Lifecycle::Reached>> Lifecycle::reach(Principal who, std::string id) {
  SandboxPtr row = CO_TRY(co_await get(who, id));
  Reached reached{.row = std::move(row), .use = uses_.begin(id)};
  if (uses_.is_asleep(id) || reached.row->status.reason == Reason::idle) {
    CO_TRY(co_await change_living(who, id, &Lifecycle::wake_locked));
    reached.row = CO_TRY(co_await get(who, id));
  }
  State state = reached.row->status.state;
  if (allows(state, Verb::reach)) {
    if (const Error* why = unreachable(id)) co_return refuse(sandbox::unreachable(id, *why));
    co_return reached;
  }
  // What can be resumed is paused, or about to be.
  if (allows(state, Verb::resume)) co_return refuse(sandbox::paused(id, to_string(state)));
  co_return refuse(sandbox::not_running(id, to_string(state), reached.row->status.message));
}

}  // namespace osb::server
