#include "cli/engine_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/block_on.h"
#include "cli/engine_files.h"
#include "docker/engine.h"

namespace osb::cli {
namespace {

constexpr char kName[] = "Docker engine", kConsequence[] = "no sandboxes of the Docker runtime";
constexpr size_t kMaxConfigBytes = 1 << 20;

enum class Trouble { configuration, absent, stopped, forbidden, silent, address, runtime, old };

const char* remedy_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::configuration:
      return "correct that line; opensandbox-server refuses it as well";
    case Trouble::absent:
      return "apt-get install docker.io and start it, or name its socket in docker.socket; the native "
             "runtime "
             "needs none";
    case Trouble::stopped:
      return "start it: systemctl start docker";
    case Trouble::forbidden:
      return "sudo osb doctor";
    case Trouble::silent:
      return "look at its log: journalctl -u docker";
    case Trouble::address:
      return "see \"An engine at an address\" in docs/docker.md for docker.host and its files";
    case Trouble::runtime:
      return "add it to \"runtimes\" in /etc/docker/daemon.json, or change secure_runtime.docker_runtime";
    case Trouble::old:
      return "use Docker 20.10 or later";
  }
  return "";
}

// What a probe says is kept by a pointer: one for each need and each remedy.
const Probe* probe_with(Need need, Trouble trouble) {
  static std::map<std::pair<Need, Trouble>, Probe> probes;
  auto [found, made] = probes.try_emplace({need, trouble});
  if (made) found->second = {kName, need, nullptr, kConsequence, remedy_of(trouble)};
  return &found->second;
}

std::string place_of(const server::DockerSection& docker) {
  if (docker.tcp_host.empty()) return docker.socket;
  return fmt::format("tcp://{}:{}{}", docker.tcp_host, docker.tcp_port,
                     docker.tls_ca.empty() ? "" : " with TLS");
}

struct Asked {
  Result<docker::EngineVersion> version = fail(Code::unavailable, "");
  Result<std::vector<std::string>> runtimes = fail(Code::unavailable, "");
};

io::Task<int> ask(docker::EngineSettings settings, Asked& out) {
  docker::Engine engine(std::move(settings));
  out.version = co_await engine.version();
  if (out.version) out.runtimes = co_await engine.runtimes();
  co_await engine.close();
  co_return 0;
}

Trouble trouble_of(const Error& error, const server::DockerSection& docker) {
  if (error.code == Code::unsupported) return Trouble::old;
  if (!docker.tcp_host.empty()) return Trouble::address;
  switch (error.sys_errno) {
    case ENOENT:
      return Trouble::absent;
    case ECONNREFUSED:
      return Trouble::stopped;
    case EACCES:
    case EPERM:
      return Trouble::forbidden;
    default:
      return Trouble::silent;
  }
}

// Where no engine is named it is the one that Docker's own client would use.
server::Config with_usual_engine(server::Config config) {
  const server::DockerSection standard;
  bool names_one = !config.docker.tcp_host.empty() || config.docker.socket != standard.socket;
  if (names_one || config.offers("docker")) return config;
  auto usual = server::parse_config("[runtime]\ntype = \"docker\"\n", "", ::getenv);
  if (usual) config.docker = std::move(usual->docker);
  return config;
}

Need need_of(const server::Config& config) {
  if (config.standard_runtime() == "docker") return Need::required;
  return config.offers("docker") ? Need::wanted : Need::note;
}

}  // namespace

Result<server::Config> configuration_at(const std::string& flag) {
  std::string path = server::config_path(flag.empty() ? std::nullopt : std::optional(flag), ::getenv);
  auto text = read_file(path, kMaxConfigBytes);
  if (!text && (!flag.empty() || text.error().code != Code::not_found))
    return std::unexpected(std::move(text.error()).in("read " + path));
  return server::parse_config(text.value_or(""), path, ::getenv);
}

Finding examine_engine(const Result<server::Config>& given) {
  auto found = [&](Need need, Trouble trouble, Error error) {
    std::ranges::replace(error.message, '\n', ' ');
    return Finding{probe_with(need, trouble), std::unexpected(std::move(error))};
  };
  if (!given) return found(Need::wanted, Trouble::configuration, given.error());
  const server::Config config = with_usual_engine(*given);
  const Need need = need_of(config);
  const std::string place = place_of(config.docker);
  docker::EngineSettings settings{.socket = config.docker.socket};
  auto tcp = engine_with_files(config);
  if (!tcp) return found(need, Trouble::address, std::move(tcp.error()));
  settings.tcp = std::move(*tcp);
  Asked asked;
  block_on(ask(std::move(settings), asked));
  if (!asked.version) {
    Trouble trouble = trouble_of(asked.version.error(), config.docker);
    Error error = std::move(asked.version.error()).in(place);
    if (trouble == Trouble::forbidden) error.code = Code::permission_denied;
    return found(need, trouble, std::move(error));
  }
  const std::string& wanted = config.secure.docker_runtime;
  bool lacks = asked.runtimes && !wanted.empty() && std::ranges::count(*asked.runtimes, wanted) == 0;
  if (lacks && need != Need::note)
    return found(need, Trouble::runtime, {Code::unavailable, 0, place + " has no runtime " + wanted});
  return {
      probe_with(need, Trouble::absent),
      fmt::format("{} {} at {}", asked.version->podman ? "Podman" : "Docker", asked.version->engine, place)};
}

}  // namespace osb::cli
