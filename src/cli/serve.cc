#include "cli/serve.h"

#include <fmt/format.h>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <optional>
#include <thread>

#include <cstdlib>

#include "base/fd.h"
#include "base/log.h"
#include "cli/api_error.h"
#include "cli/engine_files.h"
#include "cli/host_values.h"
#include "cli/log_file.h"
#include "cli/original_files.h"
#include "cli/runsc_probe.h"
#include "cli/server_role.h"
#include "cli/store_path.h"
#include "io/socket.h"
#include "launcher/identity.h"
#include "launcher/server_process.h"
#include "runtime/native/service.h"
#include "server/config.h"

namespace osb::cli {
namespace {

// The text of the configuration and where it came from.
struct ConfigText {
  std::string text, source;
};

Result<ConfigText> read_config(const ServeOptions& options) {
  if (!options.text.empty()) return ConfigText{options.text, ""};
  auto flag = options.config.empty() ? std::nullopt : std::optional(options.config);
  std::string path = server::config_path(flag, ::getenv);
  auto text = read_file(path, kMaxConfigBytes);
  if (text) return ConfigText{std::move(*text), path};
  if (text.error().code != Code::not_found) {
    return std::unexpected(std::move(text.error()).in("read the configuration"));
  }
  // A file that somebody named and that is not there would silently mean: no key, default address.
  const char* named = ::getenv("SANDBOX_CONFIG_PATH");
  if (flag || (named && *named)) {
    return fail(Code::not_found,
                fmt::format("{} does not exist\n  remedy: write one with: opensandbox-server init-config {}",
                            path, path));
  }
  return ConfigText{};
}

// After a kill -9 of the launcher its server, and with it the port, lives on for a moment: whoever starts the
// service again at once must not fail for that.
constexpr auto kPortPatience = std::chrono::seconds(3);

Result<Fd> listen_for_clients(const server::ServerSection& section) {
  auto give_up = std::chrono::steady_clock::now() + kPortPatience;
  auto listen = [&] { return io::listen_tcp(section.host, section.port, static_cast<int>(section.backlog)); };
  auto listener = listen();
  while (!listener && listener.error().sys_errno == EADDRINUSE &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    listener = listen();
  }
  if (listener) return listener;
  Error error = std::move(listener.error()).in(fmt::format("listen on {}:{}", section.host, section.port));
  if (error.sys_errno == EADDRINUSE) {
    error.message +=
        "\n  cause: another program, perhaps another server, uses this port"
        "\n  remedy: stop it, or set another port in [server] of the configuration";
  }
  return std::unexpected(std::move(error));
}

Result<void> check_runtime(const server::Config& config) {
  if (config.offers("docker") && ::geteuid() != 0) {
    return fail(
        Code::unsupported,
        "the Docker runtime is for a service that root starts\n  remedy: start it as root, or set type "
        "= \"native\" in [runtime]");
  }
  if (config.effective_runtime() != server::RuntimeType::kubernetes) return {};
  return fail(Code::unsupported, fmt::format("this build has no {} runtime\n  remedy: set type = \"native\" "
                                             "in [runtime], or add fallback = \"native\"",
                                             server::to_string(config.runtime.type)));
}

runtime::ImageSettings image_settings(const server::NativeSection& native) {
  return {.state_dir = native.state_dir,
          .host_version = "",
          .directories = native.images,
          .host_paths = native.host_paths,
          .aliases = native.image_aliases,
          .default_registry = image::kDockerHub};
}

bool uses_engine_socket(const server::Config& config) {
  return config.offers("docker") && config.docker.tcp_host.empty();
}

// Whose members may use the engine's socket. One that is not there yet has the usual group. Root's is not
// given away: with it the server could write what root's group may. Where this group does not open the
// socket the launcher connects to it.
gid_t engine_group(const server::Config& config) {
  if (!uses_engine_socket(config)) return 0;
  struct stat socket{};
  if (::stat(config.docker.socket.c_str(), &socket) == 0) return socket.st_gid;
  const struct group* usual = ::getgrnam("docker");
  return usual ? usual->gr_gid : 0;
}

// Only what it needs: the process reads what strangers send, and the file has the key.
std::vector<std::string> egress_command(const server::Config& config) {
  if (!config.egress.enabled) return {};
  std::vector<std::string> out = {"osb-egress", "--log-level=" + config.log_level};
  for (const std::string& server : config.egress.name_servers) out.push_back("--name-server=" + server);
  for (const std::string& target : config.egress.deny_always) out.push_back("--deny=" + target);
  for (const std::string& target : config.egress.allow_always) out.push_back("--allow=" + target);
  if (!config.egress.deny_webhook.empty()) out.push_back("--deny-webhook=" + config.egress.deny_webhook);
  return out;
}

struct Checked {
  ConfigText file;
  server::Config config;
  FoundRunsc runsc = {};  // without an executable: not wanted
  Fd notes = {};          // see original_files.h
};

Result<FoundRunsc> check_runsc(const server::Config& config) {
  if (!config.offers("runsc")) return FoundRunsc();
  if (::geteuid() == 0) return find_runsc(config);
  return fail(Code::unsupported,
              "sandboxes under runsc are for a service that root starts\n  remedy: start it as root, or "
              "leave runsc out "
              "of [runtime] and [secure_runtime]");
}

// What no second attempt cures: somebody has to change the configuration first.
Result<Checked> check_configuration(const ServeOptions& options) {
  auto file = TRY(read_config(options));
  auto config = TRY(server::parse_config(file.text, file.source, ::getenv));
  for (const std::string& warning : config.warnings) log::warn(warning);
  TRY(server::check_exposure(config));
  TRY(check_runtime(config));
  TRY(check_host_values(config, ::geteuid() == 0));
  TRY(hand_on_engine_files(config));
  auto notes = TRY(hand_on_original_files(config));
  auto runsc = TRY(check_runsc(config));
  return Checked{std::move(file), std::move(config), std::move(runsc), std::move(notes)};
}

Result<RotatingFile> open_log(const server::Config& config) {
  auto file = RotatingFile::open({.path = config.log_file.path,
                                  .max_bytes = config.log_file.max_bytes,
                                  .backups = config.log_file.backups});
  if (file) return file;
  file.error().message =
      fmt::format("{}: {}\n  remedy: name a place that can be written, or remove file_enabled",
                  config.place("log.file_path"), file.error().message);
  return file;
}

Result<void> hand_over(Checked checked, const std::string& given, std::optional<int> listening,
                       std::optional<RotatingFile> log_file, const Embedded& embedded) {
  auto& [file, config, runsc, notes] = checked;
  if (embedded.launcher.empty() || embedded.execd.empty() || embedded.egress.empty()) {
    return fail(
        Code::unsupported,
        "this build carries no launcher (a sanitizer build?)\n  remedy: use the release or dev preset");
  }
  if (!config.has_key())
    log::info("no API key is configured: everyone who reaches the address may use the server");
  Fd listener = listening ? Fd(*listening) : TRY(listen_for_clients(config.server));
  if (::setenv(kConfigVariable, file.text.c_str(), 1) < 0 ||
      ::setenv(kConfigSourceVariable, file.source.c_str(), 1) < 0) {
    return fail_errno("pass the configuration on");
  }
  if (log_file) {
    log::info("from here on the log is in a file", {{"path", config.log_file.path}});
    TRY(log_to(std::move(*log_file)));
  }
  return std::unexpected(
      runtime::become_service({.given_state_dir = given,
                               .images = image_settings(config.native),
                               .user = config.native.user,
                               .listener = std::move(listener),
                               .server = {"osb", "server", "--state-dir=" + config.native.state_dir},
                               .egress = egress_command(config),
                               .engine_gid = engine_group(config),
                               .engine_socket = uses_engine_socket(config) ? config.docker.socket : "",
                               .engine_is_enough = config.standard_runtime() == "docker",
                               .notes = std::move(notes),
                               .runsc = std::move(runsc.executable),
                               .runsc_platform = std::move(runsc.platform),
                               .shared_paths = config.storage.allowed_host_paths,
                               .launcher_bytes = embedded.launcher,
                               .execd_bytes = embedded.execd,
                               .egress_bytes = embedded.egress}));
}

int refused(const Error& error, int status) {
  print_error("opensandbox-server", error);
  return status;
}

// Want of memory or descriptors is nothing that somebody would have to change first.
int refused_configuration(const Error& error) {
  return refused(error, error.code == Code::exhausted ? 1 : launcher::kServerCannotStart);
}

}  // namespace

int become_service(const ServeOptions& options, const Embedded& embedded) {
  // Before anything happens: a server that must not start has no effects.
  auto checked = check_configuration(options);
  if (!checked) return refused_configuration(checked.error());
  auto& native = checked->config.native;
  auto given = server::choose_state_dir(native, ::geteuid() == 0, ::getenv);
  if (!given) return refused_configuration(given.error());
  auto resolved = launcher::resolve_state_dir(*given);
  if (!resolved) return refused(resolved.error(), 1);
  native.state_dir = *resolved;
  auto store = check_store_path(checked->config, runtime::service_account(native.user, native.state_dir));
  if (!store) return refused_configuration(store.error());
  std::optional<RotatingFile> log_file;
  if (checked->config.log_file.enabled) {
    auto opened = open_log(checked->config);
    if (!opened) return refused_configuration(opened.error());
    log_file = std::move(*opened);
  }
  return refused(
      hand_over(std::move(*checked), *given, options.listener, std::move(log_file), embedded).error(), 1);
}

}  // namespace osb::cli
