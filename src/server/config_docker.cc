#include "server/config_docker.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/strings.h"
#include "server/config_engine.h"

namespace osb::server {
namespace {

constexpr std::array<std::string_view, 23> kKeys = {"socket",
                                                    "host",
                                                    "tls_ca",
                                                    "tls_cert",
                                                    "tls_key",
                                                    "remote",
                                                    "network_mode",
                                                    "api_timeout",
                                                    "drop_capabilities",
                                                    "apparmor_profile",
                                                    "no_new_privileges",
                                                    "pids_limit",
                                                    "direct",
                                                    "publish_host",
                                                    "port_range_min",
                                                    "port_range_max",
                                                    "host_ip",
                                                    "foreign_volumes",
                                                    "adopt",
                                                    "adopt_metadata",
                                                    "seccomp_profile",
                                                    "sandbox_env",
                                                    "sandbox_binds"};
constexpr int64_t kLowestPort = 1024, kHighestPort = 65535, kLeastPorts = 100;
constexpr int64_t kUsualMin = 40000, kUsualMax = 60000;

bool is_network_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

bool is_capability(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalpha(c) || c == '_' || std::isdigit(c);
  });
}

// What this runtime does not do, and leaving it out is not for this server to decide.
void refuse_what_is_missing(Section& in, const DockerSection& docker) {
  if (!is_network_name(docker.network_mode)) {
    in.wrong("network_mode", "must be bridge, none, host or the name of a network of the engine",
             "write network_mode = \"bridge\"");
  }
}

bool is_bind_option(std::string_view word) {
  constexpr std::string_view kOptions[] = {"ro",      "rw",    "z",      "Z",       "nocopy",  "shared",
                                           "rshared", "slave", "rslave", "private", "rprivate"};
  return std::ranges::find(kOptions, word) != std::end(kOptions);
}

bool is_volume_name(std::string_view name) {
  auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && std::isalnum(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, fits);
}

// "/a:/b", "/a:/b:ro", "name:/b": what an engine takes for a mount.
bool is_bind(std::string_view text) {
  auto parts = split(text, ':');
  if (parts.size() != 2 && parts.size() != 3) return false;
  bool known = parts.size() == 2 || std::ranges::all_of(split(parts[2], ','), is_bind_option);
  return known && (parts[0].starts_with('/') || is_volume_name(parts[0])) && parts[1].starts_with('/');
}

bool is_variable(std::string_view name) {
  return !name.empty() && name.find('=') == name.npos && name.find('\0') == name.npos;
}

// What every container gets besides.
void read_given(ConfigFile& file, Section& in, const Environment& environment, Config& config) {
  DockerSection& out = config.docker;
  in.text("seccomp_profile", out.seccomp_profile);
  out.seccomp_profile = expanded_home(std::string(trim(out.seccomp_profile)), environment);
  bool is_word = out.seccomp_profile.empty() || out.seccomp_profile == kUnconfined;
  if (!is_word && !out.seccomp_profile.starts_with('/'))
    in.wrong("seccomp_profile", "must be the absolute path of a profile, or unconfined",
             "write seccomp_profile = \"/etc/opensandbox/seccomp.json\", or remove it");
  if (out.seccomp_profile == kUnconfined && config.offers("docker"))
    config.warnings.push_back(fmt::format(
        "{}: docker.seccomp_profile: programs in containers may make every call to the host's kernel",
        file.place("docker.seccomp_profile")));
  in.text_map("sandbox_env", out.sandbox_env);
  for (const auto& [name, value] : out.sandbox_env) {
    if (!is_variable(name) || value.find('\0') != value.npos)
      in.wrong("sandbox_env", "must have names and values of variables", "write TZ = \"UTC\"");
  }
  in.texts("sandbox_binds", out.sandbox_binds);
  for (const std::string& bind : out.sandbox_binds) {
    if (!is_bind(bind))
      in.wrong("sandbox_binds", "must have mounts as an engine writes them",
               "write sandbox_binds = [\"/srv/data:/data:ro\"]");
  }
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// A path that is not there is fine: that server has changed nothing.
void read_adopt(Section& in, const Environment& environment, DockerSection& out) {
  in.boolean("adopt", out.adopt);
  in.text("adopt_metadata", out.adopt_metadata);
  out.adopt_metadata = expanded_home(std::string(trim(out.adopt_metadata)), environment);
  bool is_path = (out.adopt_metadata.starts_with('/') &&
                  out.adopt_metadata.find_first_not_of('/') != std::string::npos) ||
                 out.adopt_metadata.starts_with("~/");
  if (!out.adopt_metadata.empty() && !is_path)
    in.wrong("adopt_metadata", "must be an absolute path, or begin with ~/",
             "write adopt_metadata = \"/root/.opensandbox/metadata\"");
}

// Of ports that are published.
void read_direct(Section& in, DockerSection& out) {
  in.boolean("direct", out.direct);
  std::string publish_host;
  in.text("publish_host", publish_host);
  publish_host = trim(publish_host);
  if (!publish_host.empty()) out.publish_host = publish_host;
  if (!is_ipv4(out.publish_host))
    in.wrong("publish_host", "must be an IPv4 address of this host", "write publish_host = \"127.0.0.1\"");
  in.text("host_ip", out.host_ip);
  out.host_ip = trim(out.host_ip);
  for (auto [key, port] :
       {std::pair("port_range_min", &out.port_range_min), std::pair("port_range_max", &out.port_range_max)}) {
    in.number(key, 0, kHighestPort, [&](int64_t v) { *port = v; });
    if (*port != 0 && *port < kLowestPort)
      in.wrong(key, "must be 0 or at least 1024", "remove it, so that the engine chooses any port");
  }
  if (out.port_range_min == 0 && out.port_range_max == 0) return;
  // As other servers have it when one of them is missing.
  if (out.port_range_min == 0) out.port_range_min = kUsualMin;
  if (out.port_range_max == 0) out.port_range_max = kUsualMax;
  if (out.port_range_max - out.port_range_min < kLeastPorts)
    in.wrong(in.has("port_range_max") ? "port_range_max" : "port_range_min",
             "the ports must be at least 100 apart", "write port_range_min = 40000, port_range_max = 60000");
}

}  // namespace

void read_docker(ConfigFile& file, const Environment& environment, Config& config) {
  Section in(file, "docker");
  DockerSection& out = config.docker;
  read_engine(file, in, environment, config);
  in.text("network_mode", out.network_mode);
  in.number("api_timeout", 1, 3600, [&](int64_t v) { out.api_timeout = v; });
  in.texts("drop_capabilities", out.drop_capabilities);
  for (const std::string& name : out.drop_capabilities) {
    if (!is_capability(name))
      in.wrong("drop_capabilities", "must have names of capabilities", "write \"NET_RAW\"");
  }
  in.text("apparmor_profile", out.apparmor_profile);
  out.apparmor_profile = trim(out.apparmor_profile);
  in.boolean("no_new_privileges", out.no_new_privileges);
  in.number("pids_limit", 16, 1 << 22, [&](int64_t v) { out.pids_limit = v; });
  in.boolean("foreign_volumes", out.foreign_volumes);
  read_direct(in, out);
  read_given(file, in, environment, config);
  read_adopt(in, environment, out);
  if (config.offers("docker")) {
    if (out.network_mode == "host")
      config.warnings.push_back(fmt::format(
          "{}: docker.network_mode: sandboxes get the host's own network: they reach what listens on its "
          "loopback, see each other's ports, and have no network policies",
          file.place("docker.network_mode")));
    return refuse_what_is_missing(in, out);
  }
  for (std::string_view key : kKeys) {
    if (!in.has(key)) continue;
    std::string name = fmt::format("docker.{}", key);
    config.warnings.push_back(
        fmt::format("{}: {}: it has no effect here: the runtime is another one", file.place(name), name));
  }
}

void check_direct(ConfigFile& file, const Config& config, bool secured) {
  if (secured)
    file.wrong(
        "docker.direct",
        "execd of a container with a kernel of its own (secure_runtime) lets nobody in but this server",
        "remove it");
  else if (config.docker.network_mode == "none" || !config.sandbox.has_network())
    file.wrong("docker.direct", "containers without a network have no ports to publish", "remove it");
  else if (config.docker.network_mode == "host")
    file.wrong(
        "docker.direct",
        "an engine publishes no ports of containers that have the host's own network (docker.network_mode = "
        "\"host\"): execd would listen on all addresses of this host, for everybody, without a token",
        "remove it, or write network_mode = \"bridge\"");
}

// What would be of another host, and is meant for this one.
void check_remote(ConfigFile& file, const DockerSection& docker) {
  if (docker.network_mode == "host")
    file.wrong("docker.network_mode",
               "containers of an engine on another host (docker.remote) would have that host's own network",
               "write network_mode = \"bridge\"");
  if (docker.direct)
    file.wrong("docker.direct",
               "ports of an engine on another host (docker.remote) would be open on that host, without TLS",
               "remove it; endpoints are the server's own");
  if (docker.adopt)
    file.wrong("docker.adopt",
               "containers of the original server are reached by their addresses, which mean nothing here "
               "when the engine is on another host (docker.remote)",
               "remove it, or run this server there until they have ended");
}

// A kernel of its own takes no socket of the host, so such a container is reached by its network.
void check_reach(ConfigFile& file, Config& config) {
  bool remote = config.docker.remote && config.offers("docker");
  // Such an engine may turn out to be on another host with the first create.
  bool may_be_remote = config.docker.may_be_remote() && config.offers("docker");
  if (!config.egress.image.empty() && !remote && !may_be_remote)
    config.warnings.push_back(fmt::format(
        "{}: egress.image: it has no effect here: this service's own egress process keeps policies",
        file.place("egress.image")));
  if (remote) return check_remote(file, config.docker);
  bool secured = config.effective_runtime() == RuntimeType::docker && config.secure.type != SecureType::none;
  if (config.docker.direct && config.offers("docker")) check_direct(file, config, secured);
  if (!secured) return;
  constexpr char kWhy[] =
      "containers with a kernel of their own (secure_runtime) are reached by their network, and have none";
  if (config.docker.network_mode == "none")
    file.wrong("docker.network_mode", kWhy, "write network_mode = \"bridge\"");
  else if (!config.sandbox.has_network())
    file.wrong("sandbox.allow_network", kWhy,
               "remove it, or use the native runtime, which has gVisor without a network");
}

}  // namespace osb::server
