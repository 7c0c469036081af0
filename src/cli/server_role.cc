#include "cli/server_role.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <ranges>

#include "base/log.h"
#include "cli/block_on.h"
#include "cli/engine_files.h"
#include "cli/original_files.h"
#include "cli/public_host.h"
#include "docker/docker_runtime.h"
#include "launcher/egress_process.h"
#include "launcher/server_process.h"
#include "runtime/native/native_runtime.h"
#include "runtime/native/runsc_runtime.h"
#include "runtime/native/service.h"
#include "server/serve.h"
#include "server/webhook_carrier.h"
#include "sys/cgroup.h"
#include "sys/code_pages.h"
#include "sys/short_turns.h"

namespace osb::cli {
namespace {

Result<server::Config> inherited_config(const std::string& state_dir) {
  const char* text = ::getenv(kConfigVariable);
  const char* source = ::getenv(kConfigSourceVariable);
  if (!text || !source) {
    return fail(Code::invalid_argument, "started without a configuration; start opensandbox-server instead");
  }
  auto config = TRY(server::parse_config(text, source, ::getenv));
  config.native.state_dir = state_dir;
  if (config.store_path.empty()) {
    config.store_path =
        fmt::format("{}/{}/opensandbox.db", config.native.state_dir, launcher::state::kDatabase);
  }
  return config;
}

Result<Fd> inherited(int fd, const char* what) {
  struct stat info{};
  bool is_open = ::fstat(fd, &info) == 0;
  if (!is_open && errno != EBADF) return fail_errno(what);
  if (!is_open || !S_ISSOCK(info.st_mode)) {
    return fail(Code::invalid_argument,
                fmt::format("descriptor {} is not {}; start opensandbox-server instead", fd, what));
  }
  Fd owned(fd);
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return fail_errno(what);
  return owned;
}

sandbox::Limits default_limits(const server::SandboxDefaults& defaults) {
  sandbox::Limits limits;
  auto set = [](std::optional<int64_t>& limit, const std::optional<int64_t>& value, int64_t unit) {
    if (value.value_or(0) > 0) limit = *value * unit;
  };
  set(limits.cpu_millis, defaults.cpu_quota, 10);
  set(limits.memory_bytes, defaults.memory_limit_kb, 1024);
  set(limits.disk_bytes, defaults.disk_limit_kb, 1024);
  return limits;
}

runtime::NativeSettings native_settings(const server::Config& config, const ServerRoleOptions& role,
                                        sys::CgroupLayout cgroups) {
  const server::NativeSection& native = config.native;
  return {.images = {.state_dir = native.state_dir,
                     .host_version = role.host_image,
                     .directories = native.images,
                     .host_paths = native.host_paths,
                     .aliases = native.image_aliases,
                     .default_registry = config.registry.standard},
          .pull_policy = *runtime::pull_from(config.registry.pull_policy),
          .pids_limit = native.pids_limit,
          .default_limits = default_limits(config.sandbox),
          .cgroups = std::move(cgroups),
          .rootless = role.rootless,
          .rootless_abilities = role.cgroups,
          .egress = config.egress.enabled,
          .network = config.sandbox.has_network(),
          .shm_bytes = config.sandbox.shm_bytes};
}

// Without the rights to make sandboxes; see launcher/settings.h.
bool is_engine_only(const ServerRoleOptions& role) {
  return !role.rootless && role.cgroups == runtime::kNoSandboxesHere;
}

io::Task<> set_on_signal(io::Event& stop) {
  io::asio::signal_set signals(co_await io::asio::this_coro::executor, SIGTERM, SIGINT);
  co_await signals.async_wait(io::asio::as_tuple(io::asio::deferred));
  stop.set();
}

void carry_denials(io::TaskGroup& tasks, const server::Config& config) {
  if (!config.egress.enabled) return;
  std::string socket = fmt::format("{}/run/{}{}", config.native.state_dir, launcher::kEgressSocketName,
                                   launcher::kEgressSocketSuffix);
  tasks.spawn(server::carry_denials(std::move(socket), config.egress.deny_webhook));
}

// Every runtime of this server. Owns what Runtimes borrows, and is closed from its end: one may use those
// before it.
using Made = std::vector<std::unique_ptr<runtime::Runtime>>;

struct Stop {
  explicit Stop(const io::Executor& executor) : event(executor) {}
  io::Event event;
  bool launcher_lost = false;
};

Result<std::unique_ptr<runtime::NativeRuntime>> make_native(const server::Config& config,
                                                            const ServerRoleOptions& role,
                                                            const io::Executor& executor, Stop& stop) {
  Fd channel = TRY(inherited(launcher::kServerLauncherFd, "the launcher's socket"));
  sys::CgroupLayout cgroups;  // without root: none
  if (!role.rootless) cgroups = TRY(sys::CgroupLayout::detect());
  return std::make_unique<runtime::NativeRuntime>(executor, native_settings(config, role, std::move(cgroups)),
                                                  std::move(channel), [&stop] {
                                                    stop.launcher_lost = true;
                                                    stop.event.set();
                                                  });
}

docker::DockerSettings docker_settings(const server::Config& config, std::string_view execd) {
  const server::DockerSection& in = config.docker;
  docker::DockerSettings out;
  out.engine = {.socket = in.socket, .timeout = std::chrono::seconds(in.api_timeout)};
  out.rules = {.network_mode = config.sandbox.has_network() ? in.network_mode : "none",
               .drop_capabilities = in.drop_capabilities,
               .apparmor_profile = in.apparmor_profile,
               .seccomp_profile = inherited_seccomp_profile(config),
               .seccomp_file = seccomp_file(config),
               .no_new_privileges = in.no_new_privileges,
               .binds = in.sandbox_binds,
               .oci_runtime = config.secure.docker_runtime,
               .ipv6 = ::access("/proc/sys/net/ipv6/conf/all/disable_ipv6", F_OK) == 0,
               .remote = in.remote};
  out.may_be_remote = in.may_be_remote();
  out.pull_policy = *runtime::pull_from(config.registry.pull_policy);
  out.default_registry = config.registry.standard;
  out.default_limits = default_limits(config.sandbox);
  out.default_limits.pids = in.pids_limit;
  out.shm_bytes = config.sandbox.shm_bytes;
  out.env = in.sandbox_env;
  out.shared_paths = config.storage.allowed_host_paths;
  out.state_dir = config.native.state_dir;
  out.foreign_volumes = in.foreign_volumes;
  out.execd = execd;
  out.adopt = in.adopt;
  bool has_network = out.rules.network_mode != "none";
  if ((in.remote || out.may_be_remote) && config.egress.enabled && has_network &&
      !config.egress.image.empty())
    out.sidecars = docker::EgressSettings{.image = config.egress.image,
                                          .name_servers = config.egress.name_servers,
                                          .deny_always = config.egress.deny_always,
                                          .allow_always = config.egress.allow_always,
                                          .deny_webhook = config.egress.deny_webhook};
  if (in.direct) {
    out.rules.publish = {.host = in.publish_host};
    if (in.port_range_min != 0)
      out.rules.publish->ports = fmt::format("{}-{}", in.port_range_min, in.port_range_max);
    out.public_host = public_host(config, is_in_container(::getenv));
  }
  return out;
}

// What was made before a failure works already, and is to be closed.
Result<void> make_runtimes(const server::Config& config, const ServerRoleOptions& role,
                           std::string_view execd, const std::vector<runtime::RuntimeFactory>& further,
                           const runtime::RuntimeContext& context, Stop& stop, Made& made) {
  std::optional<docker::TcpEngine> engine;
  if (config.offers("docker")) engine = TRY(inherited_engine(config));
  auto native = TRY(make_native(config, role, context.executor, stop));
  runtime::NativeRuntime& base = *native;
  made.push_back(std::move(native));
  if (config.offers("runsc")) made.push_back(std::make_unique<runtime::RunscRuntime>(base));
  if (config.offers("docker")) {
    auto settings = docker_settings(config, execd);
    settings.engine.tcp = std::move(engine);
    if (!settings.engine.tcp) settings.engine.by_root = [&base] { return base.connect_engine(); };
    settings.original = TRY(inherited_original_notes());
    settings.make_shared_path = [&base](std::string path) { return base.make_shared_path(std::move(path)); };
    bool on_host = settings.rules.network_mode == docker::kHostNetwork;
    if (config.egress.enabled && !role.rootless && !is_engine_only(role) && !on_host &&
        !settings.rules.remote)
      settings.networks = base.container_networks();
    if (settings.rules.publish)
      log::warn("docker.direct: whoever reaches the published ports of a container may do everything in it",
                {{"publish_host", settings.rules.publish->host}});
    made.push_back(TRY(docker::DockerRuntime::create(context.executor, context.owner, context.directory,
                                                     std::move(settings))));
  }
  for (const auto& factory : further) made.push_back(TRY(factory(context)));
  return {};
}

// An engine that is away is asked by every create.
io::Task<Result<void>> check_engines(const Made& made) {
  for (const auto& one : made) {
    auto* engine = dynamic_cast<docker::DockerRuntime*>(one.get());
    if (!engine) continue;
    auto checked = co_await engine->check_oci_runtime();
    if (!checked && checked.error().code == Code::invalid_argument) co_return checked;
  }
  co_return Result<void>();
}

io::Task<> close_all(const Made& made) {
  for (const auto& runtime : std::views::reverse(made)) co_await runtime->close();
}

// The standard one first.
void fill(runtime::Runtimes& runtimes, const Made& made, const server::Config& config,
          const ServerRoleOptions& role) {
  using Offered = runtime::Runtimes::Offered;
  for (const auto& one : made) {
    if (one.get() == &runtimes.standard()) continue;
    // Only the native one is there without being offered: it may have sandboxes of another configuration.
    bool hidden = one->name() == "native" && (!config.offers("native") || is_engine_only(role));
    runtimes.add(*one, hidden ? Offered::no : Offered::yes);
  }
}

runtime::Runtime& standard_of(const Made& made, const server::Config& config) {
  auto found =
      std::ranges::find(made, config.standard_runtime(), [](const auto& one) { return one->name(); });
  return found == made.end() ? *made.front() : **found;
}

// What the log and /health say of the standard runtime.
std::string describe_tier(runtime::Runtime& runtime, bool rootless) {
  if (runtime.name() != "native") return runtime.isolation().tier;
  if (!rootless) return "namespaces, user namespace, capabilities, seccomp";
  auto isolation = runtime.isolation();
  for (const std::string& what : isolation.missing) log::warn("without root", {{"lacking", what}});
  return isolation.tier;
}

io::Task<Result<void>> serve(server::Config config, ServerRoleOptions role, std::string_view execd,
                             std::vector<runtime::RuntimeFactory> further) {
  auto listener = CO_TRY(inherited(launcher::kServerListenerFd, "the listener"));
  auto executor = co_await io::asio::this_coro::executor;
  auto tokens = CO_TRY(
      server::EndpointTokens::open(fmt::format("{}/{}", config.native.state_dir, launcher::state::kSecret)));
  Stop stop(executor);
  runtime::RuntimeContext context{
      .executor = executor,
      .owner = role.identity,
      .directory = fmt::format("{}/{}", config.native.state_dir, launcher::state::kDatabase)};
  Made made;
  if (auto all = make_runtimes(config, role, execd, further, context, stop, made); !all) {
    co_await close_all(made);
    co_return all;
  }
  runtime::Runtimes runtimes(standard_of(made, config));
  fill(runtimes, made, config, role);
  if (auto checked = co_await check_engines(made); !checked) {
    co_await close_all(made);
    co_return checked;
  }

  std::string tier = describe_tier(runtimes.standard(), role.rootless);
  io::TaskGroup waiting(executor);
  waiting.spawn(set_on_signal(stop.event));
  carry_denials(waiting, config);
  auto served = co_await server::run({.config = std::move(config),
                                      .tokens = std::move(tokens),
                                      .listener = std::move(listener),
                                      .runtimes = &runtimes,
                                      .stop = &stop.event,
                                      .identity = role.identity,
                                      .isolation = std::move(tier),
                                      .on_ready = sys::forget_code_pages});
  co_await waiting.close();
  co_await close_all(made);
  if (served && stop.launcher_lost) co_return fail(Code::unavailable, "the launcher is gone");
  co_return served;
}

io::Task<int> serve_or_log(server::Config config, ServerRoleOptions role, std::string_view execd,
                           std::vector<runtime::RuntimeFactory> further) {
  auto served = co_await serve(std::move(config), std::move(role), execd, std::move(further));
  if (served) co_return 0;
  log::error(served.error().message);
  co_return server::is_permanent(served.error()) ? launcher::kServerCannotStart : 1;
}

}  // namespace

int run_server_role(const ServerRoleOptions& options, const Embedded& embedded) {
  log::set_role("server");
  ::signal(SIGPIPE, SIG_IGN);
  // A terminal that goes away tells its whole process group; what that means is for the launcher to say.
  ::signal(SIGHUP, SIG_IGN);
  sys::take_short_turns();
  auto config = inherited_config(options.state_dir);
  if (!config) {
    log::error(config.error().message);
    return launcher::kServerCannotStart;
  }
  log::set_level(log::level_from(config->log_level));
  return block_on(serve_or_log(std::move(*config), options, embedded.execd, embedded.runtimes));
}

}  // namespace osb::cli
