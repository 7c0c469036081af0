#include "docker/docker_runtime.h"

#include <algorithm>
#include <set>

#include "base/ids.h"
#include "base/log.h"
#include "docker/create_failures.h"
#include "docker/docker_sandbox.h"
#include "docker/limit_refusal.h"
#include "runtime/native/start_entry.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;

// What of the host was asked for, when the engine has mounted something else.
Kind kind_of_shown(const std::vector<ContainerMount>& mounts) {
  bool is_host = std::ranges::any_of(mounts, [](const ContainerMount& mount) {
    return mount.kind == ContainerMount::Kind::host_path && mount.volume.empty();
  });
  return is_host ? Kind::host_path_refused : Kind::sub_path_refused;
}

}  // namespace

DockerAbilities abilities_with(const DockerSettings& settings) {
  bool remote = settings.rules.remote;
  return {.policies = remote ? settings.sidecars.has_value() : settings.networks != nullptr,
          .own_kernel = settings.rules.has_own_kernel(),
          .host_network = settings.rules.network_mode == kHostNetwork,
          .published = settings.rules.publish.has_value(),
          .remote = remote};
}

runtime::EntryProcess entry_of(const Claim& claim, const Limits& limits,
                               const std::map<std::string, std::string>& standard) {
  runtime::EntryProcess entry;
  entry.inherits = true;
  entry.arguments = claim.entrypoint;
  for (const auto& pair : standard) {
    if (std::ranges::none_of(claim.env, [&](const auto& own) { return own.first == pair.first; }))
      entry.environment.push_back(pair);
  }
  entry.environment.insert(entry.environment.end(), claim.env.begin(), claim.env.end());
  std::erase_if(entry.environment, [](const auto& pair) { return pair.first == "OPENSANDBOX_ID"; });
  entry.environment.emplace_back("OPENSANDBOX_ID", claim.id);
  entry.cpu_millis = limits.cpu_millis;
  entry.memory_bytes = limits.memory_bytes;
  return entry;
}

Result<std::unique_ptr<DockerRuntime>> DockerRuntime::create(io::Executor executor, std::string owner,
                                                             const std::string& directory,
                                                             DockerSettings settings) {
  auto files = TRY(SandboxFiles::open(directory + "/docker", settings.execd));
  return std::unique_ptr<DockerRuntime>(
      new DockerRuntime(executor, std::move(owner), std::move(files), std::move(settings)));
}

DockerRuntime::DockerRuntime(io::Executor executor, std::string owner, SandboxFiles files,
                             DockerSettings settings)
    : executor_(executor),
      owner_(std::move(owner)),
      files_(std::move(files)),
      settings_(std::move(settings)),
      capabilities_(docker_capabilities(abilities_with(settings_))),
      engine_(settings_.engine),
      pulls_(executor, engine_, settings_.pull_policy, settings_.default_registry),
      tasks_(executor) {
  engine_.know_by(identity_of_engine());
  if (settings_.default_limits.disk_bytes) {
    log::warn(
        "a default limit is not enforced",
        {{"limit", "sandbox.disk_limit"},
         {"reason", "an engine limits the disk only on some of its storage drivers; a create may ask"}});
  }
}

DockerRuntime::~DockerRuntime() = default;

Task<> DockerRuntime::close() {
  co_await pulls_.close();
  co_await tasks_.close();
  co_await engine_.close();
}

runtime::Isolation DockerRuntime::isolation() const {
  if (settings_.rules.has_own_kernel()) {
    return {.tier = "container with a kernel of its own: what the engine's runtime " +
                    settings_.rules.oci_runtime + " separates",
            .missing = {"containers reach each other and what the engine's network reaches"}};
  }
  const char* network =
      settings_.rules.network_mode == kHostNetwork
          ? "containers have the host's own network: they reach what the host reaches, its loopback included"
          : "containers without a policy reach each other and what the engine's network reaches";
  return {
      .tier = "container: what the Docker engine's runtime separates",
      .missing = {"containers have the engine's user namespace, often none: root inside is root's id outside",
                  network}};
}

Task<Result<void>> DockerRuntime::health() { co_return co_await engine_.ping(); }

Task<Result<void>> DockerRuntime::check_oci_runtime() {
  const std::string& wanted = settings_.rules.oci_runtime;
  if (wanted.empty()) co_return Result<void>();
  auto names = CO_TRY(co_await engine_.runtimes());
  if (std::ranges::find(names, wanted) != names.end()) co_return Result<void>();
  std::string has;
  for (const std::string& name : names) has.append(has.empty() ? "" : ", ").append(name);
  has.resize(std::min<size_t>(has.size(), 200));
  co_return fail(Code::invalid_argument,
                 "secure_runtime.docker_runtime: the engine has no runtime " + wanted + "; it has: " + has +
                     "\n  remedy: add it to the engine's configuration, or name one of these");
}

Task<Created<PreparedPtr>> DockerRuntime::prepare(runtime::SandboxSpec spec) {
  if (!spec.image.layers.empty()) {
    co_return failed(Kind::unsupported,
                     {Code::unsupported, 0, "this snapshot is of another runtime, which has to restore it"});
  }
  if (auto network = co_await check_network(spec); !network)
    co_return std::unexpected(std::move(network.error()));
  auto image = co_await pulls_.find(spec.handle, spec.image);
  if (!image) co_return std::unexpected(std::move(image.error()));
  // By any other name it would be everybody's, and without the policy that is kept with it.
  auto owner = image->labels.find(kSnapshotOwnerLabel);
  if (spec.image.id.empty() && owner != image->labels.end() && !owner->second.empty()) {
    co_return failed(Kind::image_not_found,
                     {Code::not_found, 0, "this is a snapshot of a sandbox; name it with snapshotId"});
  }
  // Here, where there is time for a pull.
  auto egress = spec.network && settings_.rules.remote ? co_await find_egress_image(spec.handle)
                                                       : Created<std::string>();
  if (!egress) co_return std::unexpected(std::move(egress.error()));
  const Limits& standard = settings_.default_limits;
  if (!spec.limits.cpu_millis) spec.limits.cpu_millis = standard.cpu_millis;
  if (!spec.limits.memory_bytes) spec.limits.memory_bytes = standard.memory_bytes;
  if (!spec.limits.pids) spec.limits.pids = standard.pids;
  if (!spec.shm_bytes) spec.shm_bytes = settings_.shm_bytes;
  auto prepared = std::make_unique<DockerPrepared>();
  prepared->spec = std::move(spec);
  prepared->image = std::move(*image);
  prepared->egress_image = std::move(*egress);
  co_return prepared;
}

// What execd needs on this host and on the engine's, before there is a container.
Task<Created<DockerRuntime::Boot>> DockerRuntime::prepare_boot(std::string handle, std::string image,
                                                               std::string record) {
  using Secret = SandboxFiles::Secret;
  bool remote = settings_.rules.remote;
  Boot out{.source = files_.boot_on_host(handle)};
  if (remote) {
    auto volume = co_await ensure_boot_volume(std::move(image));
    if (!volume) co_return failed_step(std::move(volume.error()), "put execd into a volume of the engine");
    out.source = std::move(*volume);
  }
  if (remote || settings_.rules.by_network()) {
    auto made = files_.make_with_secret(handle, record, remote ? Secret::kept : Secret::shown);
    if (!made) co_return failed_step(std::move(made.error()), "make the sandbox's secret");
    out.secret = std::move(made->secret);
    out.token = std::move(made->token);
    // The container runs on when this host has no power.
    auto kept = remote ? co_await keep_vital_files(handle) : Result<void>();
    if (!kept) co_return failed(Kind::step_failed, std::move(kept.error()).in("keep the sandbox's secret"));
  } else {
    auto listeners = files_.make(handle, record);
    if (!listeners) co_return failed_step(std::move(listeners.error()), "make the sandbox's sockets");
    out.listeners = std::move(*listeners);
  }
  co_return out;
}

// Until execd is there.
Task<Created<void>> DockerRuntime::run_container(SandboxPtr sandbox, std::optional<Listeners> listeners,
                                                 const Limits& limits, const Mounts& mounts) {
  std::unique_ptr<io::ForeignStream> input;
  if (sandbox->by_engine()) {
    auto handed = co_await hand_secret(sandbox->container, sandbox->secret);
    if (!handed) co_return failed_step(std::move(handed.error()), "hand execd its secret");
    input = std::move(*handed);
  }
  if (auto started = co_await engine_.start(sandbox->container); !started) {
    if (names_part_of_volume(started.error().message, mounts.mounts)) co_return failed_part();
    if (auto refused = limit_refusal(limits, started.error()))
      co_return failed(Kind::bad_limit, std::move(*refused));
    // Of an image that hides execd from itself it says nothing, and another volume costs little.
    if (sandbox->by_engine() && started.error().message.find(kBootInside) != std::string::npos)
      files_.distrust_boot_volume(sandbox->boot);
    co_return failed_step(std::move(started.error()), "start the container");
  }
  if (input) input->shutdown_send();
  auto given =
      listeners ? co_await hand_over(std::move(*listeners), mounts.shown) : co_await await_execd(sandbox);
  files_.close_boot(sandbox->handle);
  if (given) co_return Created<void>();
  if (given.error().code == Code::permission_denied)
    co_return failed(kind_of_shown(mounts.mounts), std::move(given.error()).in("volumes"));
  auto state = co_await engine_.inspect(sandbox->container);
  if (!state && is_away(state.error()))
    co_return failed_step(std::move(state.error()), "start execd in the container");
  std::string more = state && !state->running ? "; " + end_of(*state).detail : "";
  if (more.empty() && !sandbox->by_engine() && given.error().code == Code::timeout)
    more = std::string("; perhaps ") + kOtherFiles;
  given.error().message += more;
  co_return failed(Kind::step_failed, std::move(given.error()).in("start execd in the container"));
}

Task<Created<DockerRuntime::SandboxPtr>> DockerRuntime::start_container(const DockerPrepared& prepared,
                                                                        std::string record,
                                                                        const Mounts& mounts) {
  const runtime::SandboxSpec& spec = prepared.spec;
  auto boot = co_await prepare_boot(spec.handle, prepared.image.id, std::move(record));
  if (!boot) co_return std::unexpected(std::move(boot.error()));
  if (spec.network && settings_.rules.remote) {
    // It was allowed before anybody knew where the engine is.
    if (!settings_.sidecars)
      co_return failed(Kind::unsupported,
                       {Code::unsupported, 0, "networkPolicy: " + capabilities_.network_policy.why});
    auto egress = prepared.egress_image.empty() ? co_await find_egress_image(spec.handle)
                                                : Created<std::string>(prepared.egress_image);
    if (!egress) co_return std::unexpected(std::move(egress.error()));
    auto sidecar = co_await start_sidecar(spec, std::move(*egress), boot->source, boot->token);
    if (!sidecar) co_return std::unexpected(std::move(sidecar.error()));
    boot->sidecar = std::move(*sidecar);
  }
  auto sandbox = co_await make_container(spec, prepared.image, *boot, mounts);
  if (!sandbox) co_return sandbox;
  auto runs = co_await run_container(*sandbox, std::move(boot->listeners), spec.limits, mounts);
  if (!runs) co_return std::unexpected(std::move(runs.error()));
  if (settings_.rules.publish) {
    auto seen = co_await engine_.inspect((*sandbox)->container);
    if (!seen) co_return failed_step(std::move(seen.error()), "find out where its ports are");
    (*sandbox)->published = std::move(seen->published);
  }
  if ((*sandbox)->control) co_return sandbox;
  auto control = co_await open_control(*sandbox);
  if (!control) co_return failed(Kind::step_failed, std::move(control.error()).in("reach execd"));
  (*sandbox)->control = std::move(*control);
  co_return sandbox;
}

Task<Created<DockerRuntime::SandboxPtr>> DockerRuntime::begin(const DockerPrepared& prepared,
                                                              std::string record) {
  bool remote = settings_.rules.remote;
  auto sandbox = co_await begin_once(prepared, record);
  if (!sandbox && remote != settings_.rules.remote)
    sandbox = co_await begin_once(prepared, std::move(record));
  co_return sandbox;
}

Task<Created<DockerRuntime::SandboxPtr>> DockerRuntime::begin_once(const DockerPrepared& prepared,
                                                                   std::string record) {
  auto mounts = co_await find_mounts(prepared.spec, prepared.image.id);
  if (!mounts) co_return std::unexpected(std::move(mounts.error()));
  auto sandbox = co_await start_container(prepared, std::move(record), *mounts);
  if (sandbox)
    (*sandbox)->made = std::move(mounts->made);
  else
    co_await undo(prepared.spec.handle, std::move(mounts->made));
  co_return sandbox;
}

Task<> DockerRuntime::undo(std::string handle, std::vector<MadeVolume> made) {
  (void)co_await destroy(std::move(handle));
  co_await forget_made(std::move(made));
}

Task<Created<std::string>> DockerRuntime::start(PreparedPtr given, Claim claim) {
  auto& prepared = static_cast<DockerPrepared&>(*given);
  std::string handle = prepared.spec.handle;
  auto sandbox = co_await begin(prepared, std::move(claim.record));
  if (!sandbox) co_return std::unexpected(std::move(sandbox.error()));
  if (prepared.spec.network) {
    auto opened = co_await open_network(*sandbox, claim.id, *prepared.spec.network);
    if (!opened) {
      co_await undo(handle, (*sandbox)->made);
      co_return std::unexpected(std::move(opened.error()));
    }
  }
  auto heard = co_await runtime::start_through(*(*sandbox)->control,
                                               entry_of(claim, prepared.spec.limits, settings_.env));
  if (!heard) {
    auto why = co_await judge(*sandbox, std::move(heard.error()));
    co_await undo(handle, (*sandbox)->made);
    co_return std::unexpected(std::move(why));
  }
  (*sandbox)->heard = std::move(*heard);
  track(*sandbox);
  co_return (*sandbox)->container;
}

void DockerRuntime::track(SandboxPtr sandbox) {
  sandbox->made.clear();
  sandboxes_[sandbox->handle] = sandbox;
  tasks_.spawn(watch(sandbox));
}

Task<Result<void>> DockerRuntime::destroy(std::string handle) {
  SandboxPtr sandbox;
  if (auto found = sandboxes_.find(handle); found != sandboxes_.end()) {
    sandbox = found->second;
    sandbox->removed = true;
    sandboxes_.erase(found);
  } else {
    auto there = co_await find(handle);
    if (!there && there.error().code != Code::not_found) co_return std::unexpected(std::move(there.error()));
    if (there) {
      sandbox = std::make_shared<Sandbox>(handle, there->id, executor_);
      sandbox->remember(*there);
    }
  }
  bool policed = !sandbox || sandbox->has_policy;
  bool by_engine = sandbox && sandbox->by_engine();
  // Of one whose container an earlier try has removed, or that never had one, it is not known where it was.
  bool has_sidecar = policed && (by_engine || !sandbox);
  // First, for the labels of the sandbox's own container say what else goes with it, and a later try needs
  // them. Nothing leaves a network whose egress has ended. Podman keeps what another container needs.
  bool first = has_sidecar && !(co_await engine_.is_podman()).value_or(false);
  if (first) CO_TRY(co_await remove_sidecar(handle));
  if (sandbox) CO_TRY(co_await engine_.remove(sandbox->container));
  if (has_sidecar && !first) CO_TRY(co_await remove_sidecar(handle));
  if (sandbox) pass_name_on(sandbox->id);
  // Also when an earlier try has removed the container and came no further.
  Result<void> closed;
  if (policed && !by_engine && settings_.networks) closed = co_await settings_.networks->close(handle);
  if (!sandbox || sandbox->has_holder) CO_TRY(co_await remove_holder(handle));
  if (sandbox) {
    if (sandbox->inherited)
      co_await forget_inherited(sandbox);
    else
      co_await forget_volumes(sandbox->volumes);
    co_await forget_image(sandbox->image);
    co_await forget_boot_volume(sandbox->boot);
  }
  if (!closed) co_return closed;
  co_return files_.remove(handle);
}

// Directories without a container are of creates that did not come to their end, or of containers that
// somebody else has removed.
Task<Result<std::vector<std::string>>> DockerRuntime::list() {
  auto all = CO_TRY(co_await engine_.labels_of_all(std::string(kOwnerLabel) + "=" + owner_));
  if (!std::exchange(swept_, true)) tasks_.spawn(sweep());
  auto names = CO_TRY(files_.list());
  std::set<std::string> handles(names.begin(), names.end());
  for (const auto& labels : all) {
    auto handle = labels.find(kHandleLabel);
    if (handle != labels.end() && is_uuid(handle->second)) handles.insert(handle->second);
  }
  CO_TRY(co_await list_inherited(handles));
  co_return std::vector<std::string>(handles.begin(), handles.end());
}

Task<Adoption> DockerRuntime::adopt(std::string handle, std::string identity) {
  using Found = Adoption::Kind;
  auto container = co_await find_again(handle, identity);
  if (!container && container.error().code != Code::not_found)
    co_return Adoption{.kind = Found::unknown, .error = std::move(container.error())};
  if (!container) {
    co_return Adoption{.kind = Found::ended,
                       .end = {End::Kind::lost, 0, "its container is not there any more"}};
  }
  if (!container->running) co_return Adoption{.kind = Found::ended, .end = co_await end_of_one(*container)};
  auto sandbox = std::make_shared<Sandbox>(handle, container->id, executor_);
  sandbox->remember(*container);
  if (sandbox->inherited) co_await find_inherited_way(sandbox, *container);
  if (auto way = find_way(*sandbox, *container); !way)
    co_return Adoption{.kind = Found::unknown, .error = std::move(way.error())};
  sandbox->paused = container->paused;
  if (container->paused) sandbox->reachable.reset();
  track(sandbox);
  if (sandbox->by_engine() && sandbox->has_policy) tasks_.spawn(look_at_sidecar(sandbox));
  co_return Adoption{.kind = Found::adopted, .paused = container->paused};
}

Task<Result<runtime::Recalled>> DockerRuntime::recall(std::string handle) {
  // Of what runs here an engine that is slow or away need not be asked.
  if (auto known = sandboxes_.find(handle); known != sandboxes_.end() && !known->second->over.is_set())
    co_return runtime::Recalled{.record = CO_TRY(files_.read_record(handle)),
                                .identity = known->second->container};
  auto container = co_await find(handle);
  if (!container && container.error().code != Code::not_found)
    co_return std::unexpected(std::move(container.error()));
  auto record = files_.read_record(handle);
  if (!record && record.error().code != Code::not_found) co_return std::unexpected(std::move(record.error()));
  runtime::Recalled out{.record = record.value_or(""), .identity = {}};
  if (container && container->running) out.identity = container->id;
  if (container && !container->labels.contains(kOwnerLabel)) {
    out.identity = container->id;
    if (out.record.empty()) out.inherited = co_await inherit(std::move(*container));
  }
  co_return out;
}

Task<Result<void>> DockerRuntime::keep_record(std::string handle, std::string record) {
  auto kept = files_.write_record(handle, record);
  if (kept || kept.error().code != Code::not_found || !settings_.adopt) co_return kept;
  auto container = CO_TRY(co_await find(handle));
  if (container.labels.contains(kOwnerLabel)) co_return kept;
  co_return files_.take_over(handle, record);
}

// What polices it stands still with it, and goes on first.
Task<Result<void>> DockerRuntime::pause_both(Container container) {
  if (!container.paused) {
    auto paused = co_await engine_.pause(container.id);
    if (!paused && paused.error().code != Code::wrong_state) co_return paused;
    if (!paused && !CO_TRY(co_await engine_.inspect(container.id)).paused)
      co_return fail(Code::not_found, "the container does not run");
  }
  auto stopped = co_await pause_sidecar(container);
  if (stopped) co_return stopped;
  (void)co_await resume_sidecar(container);
  (void)co_await engine_.unpause(container.id);
  co_return stopped;
}

Task<Result<void>> DockerRuntime::resume_both(Container container) {
  CO_TRY(co_await resume_sidecar(container));
  if (!container.paused) co_return Result<void>();
  auto resumed = co_await engine_.unpause(container.id);
  // Somebody else was faster.
  if (resumed || resumed.error().code == Code::wrong_state ||
      resumed.error().message.find("is not paused") != std::string::npos)
    co_return Result<void>();
  co_return resumed;
}

Task<Result<void>> DockerRuntime::pause(std::string handle) {
  auto container = CO_TRY(co_await find(handle));
  if (!container.running) co_return fail(Code::not_found, "the container does not run");
  auto known = sandboxes_.find(handle);
  if (known == sandboxes_.end()) co_return co_await pause_both(std::move(container));
  SandboxPtr sandbox = known->second;
  co_await Turn::wait(sandbox->egress_turn);
  Turn turn(sandbox->egress_turn, executor_);
  sandbox->paused = true;  // the engine's events say it, too
  auto paused = co_await pause_both(std::move(container));
  if (!paused) sandbox->paused = false;
  co_return paused;
}

Task<Result<bool>> DockerRuntime::resume(std::string handle) {
  auto container = CO_TRY(co_await find(handle));
  if (!container.running) co_return fail(Code::not_found, "the container does not run");
  bool was = container.paused;
  auto known = sandboxes_.find(handle);
  if (known == sandboxes_.end()) {
    CO_TRY(co_await resume_both(std::move(container)));
    co_return was;
  }
  SandboxPtr sandbox = known->second;
  co_await Turn::wait(sandbox->egress_turn);
  Turn turn(sandbox->egress_turn, executor_);
  sandbox->paused = false;
  CO_TRY(co_await resume_both(std::move(container)));
  sandbox->reachable.set();
  co_return was;
}

}  // namespace osb::docker
