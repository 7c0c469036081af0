// Containers that wait for a claim: execd runs in them and holds the place of the entry process.

#include <boost/json.hpp>

#include "docker/create_failures.h"
#include "docker/docker_sandbox.h"
#include "json/decode.h"
#include "runtime/native/start_entry.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;
using runtime::ControlState;

constexpr auto kWaitingDeadline = std::chrono::seconds(20);

std::unexpected<CreateFailure> not_waiting() {
  return failed(Kind::step_failed, {Code::not_found, 0, "the sandbox does not wait any more"});
}

// Of the connection. An engine that carries it says so in words of its own.
bool is_broken(const CreateFailure& failure) {
  return failure.kind == Kind::step_failed &&
         (failure.error.code == Code::unavailable || failure.error.code == Code::not_found);
}

// What the entry process is told of its limits, for a server that did not make the container.
std::string to_shape(const Limits& limits) {
  boost::json::object shape;
  if (limits.cpu_millis) shape["cpuMillis"] = *limits.cpu_millis;
  if (limits.memory_bytes) shape["memoryBytes"] = *limits.memory_bytes;
  return json::print(shape);
}

Result<Limits> limits_of(std::string_view shape) {
  auto value = TRY(json::parse(shape));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "shape", json::Reading::exact);
  Limits limits;
  limits.cpu_millis = field["cpuMillis"].integer();
  limits.memory_bytes = field["memoryBytes"].integer();
  if (!issues.empty()) return fail(Code::corrupt, "what is kept about a waiting sandbox makes no sense");
  return limits;
}

}  // namespace

// Says that the entry process will come, and hears that none has.
Task<Result<void>> DockerRuntime::hold_place(SandboxPtr sandbox) {
  CO_TRY(co_await sandbox->control->hold());
  auto state = CO_TRY(co_await io::with_deadline(kWaitingDeadline, "execd", sandbox->control->next()));
  if (state.kind != ControlState::Kind::waiting)
    co_return fail(Code::wrong_state, "its entry process was started already");
  co_return Result<void>();
}

Task<Created<runtime::Warm>> DockerRuntime::warm(PreparedPtr given, std::string record) {
  auto& prepared = static_cast<DockerPrepared&>(*given);
  auto sandbox = co_await begin(prepared, std::move(record));
  if (!sandbox) co_return std::unexpected(std::move(sandbox.error()));
  if (auto held = co_await hold_place(*sandbox); !held) {
    co_await undo(prepared.spec.handle, (*sandbox)->made);
    co_return failed(Kind::step_failed, std::move(held.error()).in("start execd"));
  }
  (*sandbox)->made.clear();
  (*sandbox)->waiting = prepared.spec.limits;
  sandboxes_[prepared.spec.handle] = *sandbox;
  tasks_.spawn(watch_waiting(*sandbox));
  co_return runtime::Warm{.identity = (*sandbox)->container, .shape = to_shape(prepared.spec.limits)};
}

// Nobody reads its control connection before it is claimed: only its death is noticed.
Task<> DockerRuntime::watch_waiting(SandboxPtr sandbox) {
  Result<End> asked = fail(Code::cancelled, "the server ends");
  int first = co_await io::race(ask_for_end(sandbox, asked), sandbox->claimed.wait());
  if (first != 0 || sandbox->removed) co_return;
  sandbox->end = std::move(asked);
  sandbox->over.set();
}

Task<Created<void>> DockerRuntime::claim(std::string handle, Claim claim,
                                         std::optional<runtime::NetworkPolicy> network) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end() || !found->second->waiting || found->second->over.is_set())
    co_return not_waiting();
  SandboxPtr sandbox = found->second;
  // By somebody else, for nobody of ours pauses one that waits: nothing in it would answer.
  if (sandbox->paused) co_return not_waiting();
  if (network && !sandbox->has_policy) {
    co_return failed(Kind::unsupported,
                     {Code::unsupported, 0,
                      "containers of this pool have a network of the engine's already; a pool whose template "
                      "has a networkPolicy makes some that take one"});
  }
  if (network) {
    auto opened = co_await open_network(sandbox, claim.id, std::move(*network));
    if (!opened) co_return std::unexpected(std::move(opened.error()));
    // Meanwhile it may have ended, or somebody else may have come.
    if (!sandbox->waiting || sandbox->paused || sandbox->over.is_set()) co_return not_waiting();
  }
  Limits limits = *std::exchange(sandbox->waiting, std::nullopt);
  sandbox->claimed.set();
  runtime::EntryProcess entry = entry_of(claim, limits, settings_.env);
  auto sent = co_await sandbox->control->start(entry);
  // execd is at work meanwhile. Whoever copies this sandbox needs what is in it.
  auto kept = files_.write_record(handle, claim.record);
  auto heard = sent ? co_await runtime::hear_started(*sandbox->control)
                    : Started(failed(Kind::step_failed, std::move(sent).error().in("start execd")));
  if (!heard && is_broken(heard.error())) heard = co_await start_waiting(sandbox, std::move(entry));
  if (heard && !kept) co_return failed(Kind::step_failed, std::move(kept.error()));
  if (heard) {
    sandbox->heard = std::move(*heard);
    track(sandbox);
    // The build before named it after its handle, or an Idempotency-Key has promised another id.
    if (sandbox->id != claim.id) tasks_.spawn(name_after(sandbox, claim.id));
    co_return Created<void>();
  }
  co_return std::unexpected(co_await judge(sandbox, std::move(heard.error())));
}

Task<CreateFailure> DockerRuntime::judge(SandboxPtr sandbox, CreateFailure failure) {
  if (failure.kind != Kind::step_failed) co_return failure;
  auto there = co_await engine_.inspect(sandbox->container);
  // Who is paused, by somebody else, does not answer either.
  bool gone = there ? !there->running || there->paused : there.error().code == Code::not_found;
  if (gone) failure.error.code = Code::not_found;
  if (!there && is_away(there.error())) failure = {Kind::unavailable, std::move(there.error())};
  co_return failure;
}

// Its connection broke while it waited, or just now: what it does is what execd says on another. An entry
// process that was on its way may arrive after that, and another is refused then; so it is asked again.
Task<DockerRuntime::Started> DockerRuntime::start_waiting(SandboxPtr sandbox, runtime::EntryProcess entry) {
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    auto heard = co_await start_on_new_connection(sandbox, entry);
    if (heard || i == kTries || !is_broken(heard.error())) co_return heard;
    auto there = co_await engine_.inspect(sandbox->container);
    if (!there || !there->running) co_return heard;
  }
}

Task<DockerRuntime::Started> DockerRuntime::start_on_new_connection(SandboxPtr sandbox,
                                                                    runtime::EntryProcess entry) {
  auto control = co_await open_control(sandbox);
  if (!control) co_return failed(Kind::step_failed, std::move(control.error()).in("reach execd"));
  sandbox->control = std::move(*control);
  auto state = co_await io::with_deadline(kWaitingDeadline, "execd", sandbox->control->next());
  if (!state) co_return failed(Kind::step_failed, std::move(state.error()).in("start execd"));
  if (state->kind == ControlState::Kind::waiting)
    co_return co_await runtime::start_through(*sandbox->control, std::move(entry));
  co_return co_await runtime::hear_started(*sandbox->control, std::move(*state));
}

Task<Adoption> DockerRuntime::adopt_warm(std::string handle, runtime::Warm warm) {
  using Found = Adoption::Kind;
  auto ended = [](std::string why) {
    return Adoption{.kind = Found::ended, .end = {End::Kind::lost, 0, std::move(why)}};
  };
  auto limits = limits_of(warm.shape);
  if (!limits) co_return ended(std::move(limits.error().message));
  auto container = co_await find_again(handle, warm.identity);
  if (!container && container.error().code != Code::not_found)
    co_return Adoption{.kind = Found::unknown, .error = std::move(container.error())};
  if (!container) co_return ended("its container is not there any more");
  if (!container->running) co_return Adoption{.kind = Found::ended, .end = end_of(*container)};
  // execd would not answer, and nobody of ours pauses one that waits.
  if (container->paused) co_return Adoption{.kind = Found::adopted, .paused = true};
  auto sandbox = std::make_shared<Sandbox>(handle, container->id, executor_);
  sandbox->remember(*container);
  if (auto way = find_way(*sandbox, *container); !way)
    co_return Adoption{.kind = Found::unknown, .error = std::move(way.error())};
  auto control = co_await open_control(sandbox);
  if (!control) co_return Adoption{.kind = Found::unknown, .error = std::move(control.error())};
  sandbox->control = std::move(*control);
  auto held = co_await hold_place(sandbox);
  if (!held && held.error().code == Code::wrong_state) co_return ended(std::move(held.error().message));
  if (!held) co_return Adoption{.kind = Found::unknown, .error = std::move(held.error())};
  sandbox->waiting = *limits;
  sandboxes_[handle] = sandbox;
  tasks_.spawn(watch_waiting(sandbox));
  co_return Adoption{.kind = Found::adopted};
}

}  // namespace osb::docker
