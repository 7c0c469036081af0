#include "runtime/native/native_runtime.h"

#include <fcntl.h>
#include <signal.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/strings.h"
#include "launcher/egress_process.h"
#include "runtime/native/egress_client.h"
#include "runtime/native/entry_process.h"
#include "runtime/native/isolation.h"
#include "runtime/native/launcher_networks.h"
#include "runtime/native/native_capabilities.h"
#include "runtime/native/native_sandbox.h"
#include "runtime/native/plan.h"
#include "runtime/native/rootless.h"
#include "runtime/native/start_entry.h"
#include "sys/process.h"

namespace osb::runtime {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(10);
constexpr uint32_t kSocketBatch = 8;

// An index that cannot be read says nothing about which images there are.
std::unexpected<CreateFailure> no_image(Error error) {
  using Kind = CreateFailure::Kind;
  return failed(error.code == Code::not_found ? Kind::image_not_found : Kind::step_failed, std::move(error));
}

// pid, start time and boot: together they name one process for ever.
std::string identity_of(const launcher::Started& started, const std::string& boot_id) {
  return std::to_string(started.pid) + " " + std::to_string(started.start_ticks) + " " + boot_id;
}

// A default that this host cannot enforce is said once, not refused with every create: nobody asked for it.
void keep_if_able(std::optional<int64_t>& limit, const Ability& ability, const char* name) {
  if (!limit || ability.kind == Ability::Kind::yes) return;
  log::warn("a default limit is not enforced", {{"limit", name}, {"reason", ability.why}});
  if (!ability) limit.reset();
}

}  // namespace

NativeRuntime::NativeRuntime(io::Executor executor, NativeSettings settings, Fd channel,
                             std::function<void()> on_launcher_lost)
    : executor_(executor),
      settings_(std::move(settings)),
      capabilities_(settings_.rootless
                        ? rootless_capabilities(RootlessFacts::read(settings_.rootless_abilities))
                        : native_capabilities(settings_.cgroups)),
      images_(settings_.images),
      launcher_(executor, std::move(channel), std::move(on_launcher_lost)),
      tasks_(executor),
      pulls_(executor,
             {.state_dir = settings_.images.state_dir,
              .default_registry = settings_.images.default_registry,
              .policy = settings_.pull_policy,
              .obstacle = capabilities_.pull ? "" : capabilities_.pull.why,
              .base_of = [this](const std::string& asked) { return images_.base_of(asked); },
              .id_of = [this](const std::string& asked, const std::string& owner) -> Result<std::string> {
                return TRY(images_.find(asked, owner)).id;
              },
              .directories = images_.directories()},
             launcher_, tasks_) {
  if (!settings_.egress)
    capabilities_.network_policy = Ability::cannot(
        "sandboxes of this server have no network: its configuration does not say "
        "enabled = true below [egress]");
  keep_if_able(settings_.default_limits.cpu_millis, capabilities_.cpu, "sandbox.cpu_quota");
  keep_if_able(settings_.default_limits.memory_bytes, capabilities_.memory, "sandbox.memory_limit");
  keep_if_able(settings_.default_limits.disk_bytes, capabilities_.disk, "sandbox.disk_limit");
  tasks_.spawn(launcher_.run());
}

NativeRuntime::~NativeRuntime() = default;

Task<> NativeRuntime::close() { co_await tasks_.close(); }

// Never without one: an identity that lacks its boot would be one of another boot for the next server, and
// its sandbox, which runs, would have ended with the host.
Result<std::string> NativeRuntime::boot_id() {
  if (boot_id_.empty()) boot_id_ = TRY(sys::boot_id());
  return boot_id_;
}

std::string NativeRuntime::socket_path(const std::string& handle, const char* suffix) const {
  return settings_.images.state_dir + "/run/" + handle + suffix;
}

Isolation NativeRuntime::isolation() const {
  return settings_.rootless ? rootless_isolation(RootlessFacts::read(settings_.rootless_abilities))
                            : native_isolation(settings_.cgroups);
}

Task<Result<void>> NativeRuntime::health() {
  // The launcher made its groups a moment ago, before it started this server. It is busy making things ahead
  // now, and whoever waits for the start should not wait for that.
  constexpr auto kFreshStart = std::chrono::seconds(1);
  if (std::chrono::steady_clock::now() - started_ < kFreshStart) co_return Result<void>();
  auto answered = co_await launcher_.ask(launcher::HealthRequest{});
  if (!answered) co_return std::unexpected(std::move(answered.error()).in("no sandbox can be made"));
  co_return Result<void>();
}

Task<Created<ImageRoot>> NativeRuntime::find_image(std::string handle, std::string owner,
                                                   ImageRequest request) {
  using Here = ImagePulls::Here;
  auto image = images_.find(request.reference, owner, request.id);
  // A snapshot lies over this very image; what a registry has under its name by now is another one.
  if (!request.id.empty() && image) co_return std::move(*image);
  if (!request.id.empty()) co_return no_image(std::move(image).error());
  if (!image && image.error().code != Code::not_found) co_return no_image(std::move(image).error());
  Here here = !image ? Here::no : image->pulled ? Here::from_registry : Here::local;
  if (!pulls_.wants_pull(request, here)) {
    if (!image) co_return no_image(std::move(image).error());
    co_return std::move(*image);
  }
  auto pull = pulls_.pull(request);
  // No name that a registry could know: it is not here, and that is all.
  if (!pull) co_return no_image(image ? std::move(pull).error() : std::move(image).error());
  pulling_[handle] = *pull;
  Cleanup forget;
  forget.push([this, handle] { pulling_.erase(handle); });
  co_await (*pull)->done.wait();
  if (!(*pull)->outcome) co_return std::unexpected(pull_failure((*pull)->outcome.error()));
  // By its full name: a local image may have a shorter one.
  image = images_.find((*pull)->name, owner);
  if (!image) co_return no_image(std::move(image).error());
  co_return std::move(*image);
}

std::string NativeRuntime::preparing(const std::string& handle) const {
  auto found = pulling_.find(handle);
  if (found == pulling_.end()) return {};
  return "pulling " + found->second->name + ": " + to_text(found->second->progress);
}

Task<Created<PreparedPtr>> NativeRuntime::prepare(SandboxSpec spec) {
  auto image = co_await find_image(spec.handle, spec.owner, spec.image);
  if (!image) co_return std::unexpected(std::move(image).error());
  auto prepared = std::make_unique<NativePrepared>();
  if (!spec.limits.cpu_millis) spec.limits.cpu_millis = settings_.default_limits.cpu_millis;
  if (!spec.limits.memory_bytes) spec.limits.memory_bytes = settings_.default_limits.memory_bytes;
  if (!spec.limits.disk_bytes) spec.limits.disk_bytes = settings_.default_limits.disk_bytes;
  Limits limits = spec.limits;
  if (!limits.pids && capabilities_.pids) limits.pids = settings_.pids_limit;
  prepared->network = spec.network;
  if (!spec.shm_bytes) spec.shm_bytes = settings_.shm_bytes;
  prepared->owner = spec.owner;
  prepared->mounts = spec.mounts;
  prepared->plan = make_plan(spec, *image, limits, settings_.images.state_dir);
  // The default policy needs no word to the egress process: it hears of the sandbox when it speaks.
  if (!spec.network && settings_.network && settings_.egress)
    prepared->plan.network.kind = launcher::PlanNetwork::Kind::open;
  prepared->limits = spec.limits;
  prepared->config = std::move(image->config);
  co_return prepared;
}

Task<Result<std::pair<NativeRuntime::SandboxPtr, std::string>>> NativeRuntime::start_processes(
    const launcher::Plan& plan) {
  std::string boot = CO_TRY(boot_id());
  auto answer = CO_TRY(co_await launcher_.ask(launcher::StartRequest{plan}));
  auto sandbox = std::make_shared<Sandbox>(plan.id, executor_, std::move(answer.descriptors[0]));
  sandbox->control = CO_TRY(co_await ControlConnection::open(socket_path(plan.id, ".control")));
  co_return std::pair(sandbox, identity_of(answer.body.first_process, boot));
}

Task<> NativeRuntime::attach(std::shared_ptr<Attaching> attaching, std::string handle, std::string id) {
  attaching->result = co_await attach_egress(
      socket_path(launcher::kEgressSocketName, launcher::kEgressSocketSuffix), handle, id, attaching->policy);
  attaching->done.set();
}

Task<Result<std::optional<NetworkPolicy>>> NativeRuntime::network_of(std::string handle) {
  if (!settings_.egress) co_return std::optional<NetworkPolicy>();
  co_return co_await egress_policy(socket_path(launcher::kEgressSocketName, launcher::kEgressSocketSuffix),
                                   std::move(handle));
}

std::unique_ptr<ContainerNetworks> NativeRuntime::container_networks() {
  return std::make_unique<LauncherNetworks>(
      launcher_, socket_path(launcher::kEgressSocketName, launcher::kEgressSocketSuffix));
}

Task<Result<io::Socket>> NativeRuntime::connect_engine() {
  constexpr io::Duration kFirst = std::chrono::milliseconds(1), kMost = std::chrono::milliseconds(50);
  for (io::Duration pause = kFirst;; pause = std::min(pause * 2, kMost)) {
    auto answer = co_await launcher_.ask(launcher::EngineRequest{});
    if (answer) {
      io::widen_unix(answer->descriptors[0].get());
      co_return io::adopt(executor_, std::move(answer->descriptors[0]));
    }
    // Too many wait there already, and nothing tells when one of them is taken.
    if (answer.error().code != Code::exhausted) co_return std::unexpected(std::move(answer.error()));
    co_await io::sleep_for(pause);
  }
}

Task<Result<std::string>> NativeRuntime::metrics() {
  if (!settings_.egress) co_return std::string();
  co_return co_await egress_metrics(socket_path(launcher::kEgressSocketName, launcher::kEgressSocketSuffix));
}

Created<void> NativeRuntime::judge(const Attaching& attaching) {
  if (attaching.result) return {};
  using Kind = CreateFailure::Kind;
  Error told = attaching.result.error();
  bool cannot = told.code == Code::unsupported;
  return failed(cannot ? Kind::unsupported : Kind::step_failed,
                std::move(told).in("open the sandbox's network"));
}

Created<void> NativeRuntime::take_heard(Sandbox& sandbox, Created<std::optional<ControlState>> heard) {
  if (!heard) return std::unexpected(std::move(heard).error());
  sandbox.heard = std::move(*heard);
  return {};
}

Task<Created<void>> NativeRuntime::start_entry(SandboxPtr sandbox, EntryProcess entry) {
  auto heard = co_await start_through(*sandbox->control, std::move(entry));
  co_return take_heard(*sandbox, std::move(heard));
}

Task<Created<void>> NativeRuntime::hear_started(SandboxPtr sandbox) {
  auto heard = co_await runtime::hear_started(*sandbox->control);
  co_return take_heard(*sandbox, std::move(heard));
}

Task<Created<std::string>> NativeRuntime::start(PreparedPtr given, Claim claim) {
  using Kind = CreateFailure::Kind;
  auto& prepared = static_cast<NativePrepared&>(*given);
  const std::string& handle = prepared.plan.id;
  EntryProcess process = entry_process(claim, prepared.limits, prepared.config);
  prepared.plan.record = std::move(claim.record);
  std::vector<MadeVolume> made;
  if (!prepared.mounts.empty()) {
    auto volumes = co_await ensure_volumes(prepared.owner, prepared.mounts);
    if (!volumes) co_return std::unexpected(std::move(volumes).error());
    made = std::move(*volumes);
  }
  auto started = co_await start_processes(prepared.plan);
  if (!started) {
    (void)co_await destroy(handle);
    co_await drop_volumes(std::move(made));
    Kind kind = kind_of_start(prepared.mounts, started.error());
    co_return failed(kind, std::move(started).error());
  }
  auto [sandbox, identity] = std::move(*started);
  std::shared_ptr<Attaching> attaching;
  if (prepared.network) {
    attaching = std::make_shared<Attaching>(executor_, std::move(*prepared.network));
    tasks_.spawn(attach(attaching, handle, claim.id));
  }
  auto entry = co_await start_entry(sandbox, std::move(process));
  if (entry && attaching) {
    co_await attaching->done.wait();
    entry = judge(*attaching);
  }
  if (!entry) {
    (void)co_await destroy(handle);
    co_await drop_volumes(std::move(made));
    co_return std::unexpected(std::move(entry).error());
  }
  sandboxes_[handle] = sandbox;
  tasks_.spawn(watch(sandbox));
  co_return identity;
}

Task<Result<void>> NativeRuntime::destroy(std::string handle) {
  auto found = sandboxes_.find(handle);
  if (found != sandboxes_.end()) {
    found->second->removed = true;
    sandboxes_.erase(found);
  }
  CO_TRY(co_await launcher_.ask(launcher::DestroyRequest{{std::move(handle)}}));
  co_return Result<void>{};
}

Task<Result<std::vector<std::string>>> NativeRuntime::list() {
  std::vector<std::string> handles;
  while (true) {
    auto page = CO_TRY(
        co_await launcher_.ask(launcher::ListRequest{handles.empty() ? std::string() : handles.back()}));
    handles.insert(handles.end(), page.body.ids.begin(), page.body.ids.end());
    if (page.body.ids.size() < launcher::kListPage) co_return handles;
  }
}

Task<std::pair<Adoption, NativeRuntime::SandboxPtr>> NativeRuntime::find_running(std::string handle,
                                                                                 std::string identity) {
  using Kind = Adoption::Kind;
  using Found = std::pair<Adoption, SandboxPtr>;
  auto ended = [](End end) { return Found(Adoption{.kind = Kind::ended, .end = std::move(end)}, nullptr); };
  auto unknown = [](Error error) {
    return Found(Adoption{.kind = Kind::unknown, .error = std::move(error)}, nullptr);
  };
  auto words = split(identity, ' ');
  auto pid = words.size() == 3 ? parse_number<int64_t>(words[0]) : std::nullopt;
  auto ticks = words.size() == 3 ? parse_number<uint64_t>(words[1]) : std::nullopt;
  if (!pid || !ticks) co_return ended({End::Kind::lost, 0, "its record cannot be read"});
  auto boot = boot_id();
  if (!boot) co_return unknown(std::move(boot.error()));
  // One without a boot was written when the kernel did not say which this is; pid and start time remain.
  if (!words[2].empty() && words[2] != *boot)
    co_return ended({End::Kind::host_restarted, 0, "the host was restarted"});
  auto answer = co_await launcher_.ask(launcher::AdoptRequest{handle, {*pid, *ticks}});
  if (!answer && answer.error().code == Code::not_found)
    co_return ended(co_await explain_death(handle, -1, 0));
  if (!answer) co_return unknown(std::move(answer.error()));
  auto sandbox = std::make_shared<Sandbox>(handle, executor_, std::move(answer->descriptors[0]));
  co_return Found(Adoption{.kind = Kind::adopted, .paused = answer->body.frozen}, std::move(sandbox));
}

Task<Adoption> NativeRuntime::adopt(std::string handle, std::string identity) {
  auto [adoption, sandbox] = co_await find_running(handle, std::move(identity));
  if (!sandbox) co_return std::move(adoption);
  // A connection to one that is frozen would wait in its queue, and each restart would leave another there.
  if (adoption.paused) sandbox->reachable.reset();
  sandboxes_[handle] = sandbox;
  tasks_.spawn(watch(sandbox));
  co_return std::move(adoption);
}

Task<Result<Recalled>> NativeRuntime::recall(std::string handle) {
  auto answer = CO_TRY(co_await launcher_.ask(launcher::RecallRequest{{handle}}));
  Recalled recalled{.record = std::move(answer.body.record), .identity = {}};
  if (auto found = sandboxes_.find(handle); found != sandboxes_.end() && found->second->unkept)
    recalled.record = *found->second->unkept;
  const launcher::Started& first = answer.body.first_process;
  if (first.pid > 0) recalled.identity = identity_of(first, CO_TRY(boot_id()));
  co_return recalled;
}

Task<Result<void>> NativeRuntime::keep_record(std::string handle, std::string record) {
  // Whoever still tries to keep an earlier one tries this one from now on.
  auto found = sandboxes_.find(handle);
  SandboxPtr sandbox = found != sandboxes_.end() ? found->second : nullptr;
  if (sandbox && sandbox->unkept) sandbox->unkept = record;
  CO_TRY(co_await launcher_.ask(launcher::RecordRequest{std::move(handle), record}));
  if (sandbox && sandbox->unkept == record) sandbox->unkept.reset();
  co_return Result<void>{};
}

Task<Result<void>> NativeRuntime::pause(std::string handle) {
  CO_TRY(co_await launcher_.ask(launcher::FreezeRequest{{std::move(handle)}}));
  co_return Result<void>{};
}

Task<Result<bool>> NativeRuntime::resume(std::string handle) {
  auto answer = CO_TRY(co_await launcher_.ask(launcher::ThawRequest{{handle}}));
  if (auto found = sandboxes_.find(handle); found != sandboxes_.end()) found->second->reachable.set();
  co_return answer.body.was_frozen;
}

Task<Result<Fd>> NativeRuntime::take_socket(SandboxPtr sandbox) {
  if (sandbox->sockets.empty()) {
    auto answer = CO_TRY(co_await launcher_.ask(launcher::SocketsRequest{sandbox->handle, kSocketBatch}));
    for (Fd& fd : answer.descriptors) sandbox->sockets.push_back(std::move(fd));
  }
  Fd socket = std::move(sandbox->sockets.back());
  sandbox->sockets.pop_back();
  co_return socket;
}

Task<Result<io::Stream>> NativeRuntime::connect(std::string handle, uint16_t port) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) co_return fail(Code::not_found, "sandbox " + handle + " does not run");
  SandboxPtr sandbox = found->second;
  if (port == kExecdPort) {
    co_return CO_TRY(
        co_await io::with_deadline(kConnectDeadline, "execd", io::connect_unix(socket_path(handle, ".api"))));
  }
  if (port == kEgressPort) {
    co_return CO_TRY(co_await io::with_deadline(
        kConnectDeadline, "the egress process",
        connect_egress(socket_path(launcher::kEgressSocketName, launcher::kEgressSocketSuffix), handle)));
  }
  Fd socket = CO_TRY(co_await take_socket(sandbox));
  co_return CO_TRY(co_await io::with_deadline(kConnectDeadline, "port " + std::to_string(port),
                                              io::connect_loopback(std::move(socket), port)));
}

Task<Result<Output>> NativeRuntime::logs(std::string handle) {
  co_return co_await execd_logs(*this, std::move(handle), tasks_);
}

}  // namespace osb::runtime
