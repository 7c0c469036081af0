// Sandboxes that wait for a claim: everything of them runs, and execd holds its place for the entry process.
// What that will be started with comes from the image at the time of warm(); the store keeps it for the next
// server, because a name may mean another image by then.

#include <algorithm>
#include <boost/json.hpp>

#include "base/bootstrap_variables.h"
#include "base/hooks_variable.h"
#include "base/idle_entry.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/decode.h"
#include "json/string_lists.h"
#include "runtime/native/entry_process.h"
#include "runtime/native/native_sandbox.h"

namespace osb::runtime {
namespace {

using Kind = CreateFailure::Kind;

// execd answers within milliseconds; what was frozen with the whole host may take longer.
constexpr auto kWaitingDeadline = std::chrono::seconds(20);
constexpr io::Duration kRecordAgainFirst = std::chrono::seconds(1),
                       kRecordAgainMost = std::chrono::minutes(1);
// Far below what a kernel takes.
constexpr size_t kSmallEnvironment = 64 << 10;

// Nothing that a client has said of it can be wrong.
bool starts_surely(const EntryProcess& process) {
  if (!is_idle_entry(process.arguments)) return false;
  size_t bytes = 0;
  for (const auto& [name, value] : process.environment) {
    if (name == kHooksVariable || name == kPreScriptVariable || name == kEntryLineVariable) return false;
    bytes += name.size() + value.size();
  }
  return bytes <= kSmallEnvironment;
}

}  // namespace

std::string to_shape(const Waiting& waiting) {
  boost::json::array env;
  for (const auto& [key, value] : waiting.config.env) env.push_back(boost::json::array{key, value});
  boost::json::object shape{
      {"env", std::move(env)},     {"workdir", waiting.config.workdir}, {"uid", waiting.config.uid},
      {"gid", waiting.config.gid}, {"user", waiting.config.user_name},  {"home", waiting.config.home}};
  if (waiting.limits.cpu_millis) shape["cpuMillis"] = *waiting.limits.cpu_millis;
  if (waiting.limits.memory_bytes) shape["memoryBytes"] = *waiting.limits.memory_bytes;
  return json::print(shape);
}

Result<Waiting> from_shape(std::string_view text) {
  auto value = json::parse(text);
  if (!value) return fail(Code::corrupt, "what is kept about a waiting sandbox: " + value.error().message);
  json::Issues issues;
  auto shape = json::Field::root(*value, issues, "shape", json::Reading::exact);
  Waiting waiting;
  for (const json::Field& pair : shape["env"].array().value_or(std::vector<json::Field>())) {
    auto words = pair.string_list().value_or(std::vector<std::string>());
    if (words.size() == 2)
      waiting.config.env.emplace_back(std::move(words[0]), std::move(words[1]));
    else
      pair.complain("value_error", "must be a name and a value");
  }
  waiting.config.workdir = shape["workdir"].required_string();
  waiting.config.user_name = shape["user"].required_string();
  waiting.config.home = shape["home"].required_string();
  for (auto [name, id] : {std::pair("uid", &waiting.config.uid), std::pair("gid", &waiting.config.gid)}) {
    int64_t number = shape[name].required_integer();
    if (number < 0 || number >= 0xFFFFFFFF) shape[name].complain("value_error", "is no id");
    *id = static_cast<uint32_t>(number);
  }
  waiting.limits.cpu_millis = shape["cpuMillis"].integer();
  waiting.limits.memory_bytes = shape["memoryBytes"].integer();
  if (!issues.empty()) return fail(Code::corrupt, "what is kept about a waiting sandbox makes no sense");
  return waiting;
}

// Says that the entry process will come, and hears that none has.
Task<Result<void>> NativeRuntime::wait_for_execd(SandboxPtr sandbox) {
  CO_TRY(co_await sandbox->control->hold());
  auto state = CO_TRY(co_await io::with_deadline(kWaitingDeadline, "execd", sandbox->control->next()));
  if (state.kind != ControlState::Kind::waiting)
    co_return fail(Code::wrong_state, "its entry process was started already");
  co_return Result<void>();
}

void NativeRuntime::hold(SandboxPtr sandbox, Waiting waiting) {
  sandbox->waiting = std::make_unique<Waiting>(std::move(waiting));
  sandboxes_[sandbox->handle] = sandbox;
  tasks_.spawn(watch_waiting(sandbox));
}

// Nobody reads its control connection before it is claimed: only its death is noticed.
Task<> NativeRuntime::watch_waiting(SandboxPtr sandbox) {
  co_await io::race(until_gone(sandbox), sandbox->claimed.wait());
  if (sandbox->claimed.is_set() || sandbox->removed) co_return;
  sandbox->end = co_await explain_death(sandbox->handle, sandbox->pidfd.get(), 0);
  sandbox->ended.set();
}

Task<Created<Warm>> NativeRuntime::warm(PreparedPtr given, std::string record) {
  auto& prepared = static_cast<NativePrepared&>(*given);
  const std::string& handle = prepared.plan.id;
  prepared.plan.record = std::move(record);
  std::vector<MadeVolume> made;
  if (!prepared.mounts.empty()) {
    auto volumes = co_await ensure_volumes(prepared.owner, prepared.mounts);
    if (!volumes) co_return std::unexpected(std::move(volumes).error());
    made = std::move(*volumes);
  }
  auto started = co_await start_processes(prepared.plan);
  auto ready = started ? co_await wait_for_execd(started->first) : Result<void>();
  if (!started || !ready) {
    Error error = started ? std::move(ready).error().in("start execd") : std::move(started).error();
    (void)co_await destroy(handle);
    co_await drop_volumes(std::move(made));
    Kind kind = kind_of_start(prepared.mounts, error);
    co_return failed(kind, std::move(error));
  }
  Waiting waiting{.limits = prepared.limits, .config = std::move(prepared.config)};
  Warm warm{.identity = std::move(started->second), .shape = to_shape(waiting)};
  hold(std::move(started->first), std::move(waiting));
  co_return warm;
}

Task<> NativeRuntime::record(std::shared_ptr<Recording> recording, std::string handle, std::string record) {
  recording->result = co_await keep_record(std::move(handle), std::move(record));
  recording->done.set();
}

// Of one that its client has been told of: what cannot be kept now is tried again until it is, or until
// another one was kept in its place.
Task<> NativeRuntime::record_in_the_end(SandboxPtr sandbox) {
  for (io::Duration again = kRecordAgainFirst; !sandbox->removed && sandbox->unkept;
       again = std::min(again * 2, kRecordAgainMost)) {
    auto kept = co_await keep_record(sandbox->handle, *sandbox->unkept);
    if (kept) co_return;
    log::warn("cannot keep the record of a claimed sandbox, trying again",
              {{"handle", sandbox->handle}, {"error", kept.error().message}});
    co_await io::race(io::sleep_for(again), sandbox->ended.wait());
    if (sandbox->ended.is_set()) co_return;
  }
}

// One that was not waited for. Whatever becomes of it is its end, and told as such.
Task<> NativeRuntime::watch_starting(SandboxPtr sandbox) {
  co_await io::yield();  // the answer first
  auto state = co_await sandbox->control->next();
  if (state && is_last(*state)) sandbox->heard = std::move(*state);
  co_await watch(sandbox);
}

Task<Created<void>> NativeRuntime::claim(std::string handle, Claim claim,
                                         std::optional<NetworkPolicy> network) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end() || !found->second->waiting || found->second->ended.is_set())
    co_return failed(Kind::step_failed, {Code::not_found, 0, "the sandbox does not wait any more"});
  SandboxPtr sandbox = found->second;
  auto waiting = std::move(sandbox->waiting);
  sandbox->claimed.set();
  std::shared_ptr<Attaching> attaching;
  if (network) {
    attaching = std::make_shared<Attaching>(executor_, std::move(*network));
    tasks_.spawn(attach(attaching, handle, claim.id));
  }
  // The record is with the launcher while execd starts the process, which takes longer: that goes first.
  // Whoever copies this sandbox needs what is in it.
  auto process = entry_process(claim, waiting->limits, waiting->config);
  bool is_sure = starts_surely(process) && !attaching;
  auto sent = co_await sandbox->control->start(std::move(process));
  if (sent && is_sure && launcher_.has_room()) {
    // Its row is stored and its client is answered while the process starts. The record is in the launcher's
    // socket before that, from where no kill of this process takes it.
    sandbox->unkept = std::move(claim.record);
    tasks_.spawn(watch_starting(sandbox));
    tasks_.spawn(record_in_the_end(sandbox));
    co_return Created<void>();
  }
  auto recording = std::make_shared<Recording>(executor_);
  tasks_.spawn(record(recording, handle, std::move(claim.record)));
  auto entry = sent ? co_await hear_started(sandbox)
                    : failed(Kind::step_failed, std::move(sent).error().in("start execd"));
  co_await recording->done.wait();
  if (entry && !recording->result) entry = failed(Kind::step_failed, std::move(recording->result.error()));
  if (entry && attaching) {
    co_await attaching->done.wait();
    entry = judge(*attaching);
  }
  if (entry) tasks_.spawn(watch(sandbox));
  if (!entry && entry.error().kind == Kind::step_failed && is_gone(sandbox->pidfd))
    entry.error().error.code = Code::not_found;
  co_return entry;
}

Task<Adoption> NativeRuntime::adopt_warm(std::string handle, Warm warm) {
  auto waiting = from_shape(warm.shape);
  if (!waiting)
    co_return Adoption{.kind = Adoption::Kind::ended,
                       .end = {End::Kind::lost, 0, std::move(waiting.error().message)}};
  auto [adoption, sandbox] = co_await find_running(handle, std::move(warm.identity));
  if (!sandbox) co_return std::move(adoption);
  auto unknown = [](Error error) {
    return Adoption{.kind = Adoption::Kind::unknown, .error = std::move(error)};
  };
  auto control = co_await ControlConnection::open(socket_path(handle, ".control"));
  if (!control) co_return unknown(std::move(control.error()));
  sandbox->control = std::move(*control);
  auto ready = co_await wait_for_execd(sandbox);
  if (!ready && ready.error().code != Code::wrong_state) co_return unknown(std::move(ready.error()));
  if (!ready)
    co_return Adoption{.kind = Adoption::Kind::ended, .end = {End::Kind::lost, 0, ready.error().message}};
  hold(std::move(sandbox), std::move(*waiting));
  co_return adoption;
}

}  // namespace osb::runtime
