#include "server/config_docker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/strings.h"
#include "server/config_engine.h"

namespace osb::server {
namespace {

constexpr std::array<std::string_view, 11> kKeys = {"socket",           "host",
                                                    "tls_ca",           "tls_cert",
                                                    "tls_key",          "network_mode",
                                                    "api_timeout",      "drop_capabilities",
                                                    "apparmor_profile", "no_new_privileges",
                                                    "pids_limit"};

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
void refuse_what_is_missing(ConfigFile& file, Section& in, const DockerSection& docker) {
  if (!is_network_name(docker.network_mode)) {
    in.wrong("network_mode", "must be bridge, none, host or the name of a network of the engine",
             "write network_mode = \"bridge\"");
  }
  const toml::node* profile = file.root.at_path("docker.seccomp_profile").node();
  if (profile != nullptr && !trim(profile->value_or(std::string_view("?"))).empty()) {
    file.lines["docker.seccomp_profile"] = profile->source().begin.line;
    in.wrong("seccomp_profile", "this server does not give profiles to the engine",
             "remove it, so that the engine's own profile counts");
  }
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
  if (config.offers("docker")) {
    if (out.network_mode == "host")
      config.warnings.push_back(fmt::format(
          "{}: docker.network_mode: sandboxes get the host's own network: they reach what listens on its "
          "loopback, see each other's ports, and have no network policies",
          file.place("docker.network_mode")));
    return refuse_what_is_missing(file, in, out);
  }
  for (std::string_view key : kKeys) {
    if (!in.has(key)) continue;
    std::string name = fmt::format("docker.{}", key);
    config.warnings.push_back(
        fmt::format("{}: {}: it has no effect here: the runtime is another one", file.place(name), name));
  }
}

}  // namespace osb::server
