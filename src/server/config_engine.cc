#include "server/config_engine.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "server/config_sandbox.h"

namespace osb::server {
namespace {

constexpr uint16_t kPlainPort = 2375, kTlsPort = 2376;

// What is wrong with an address of an engine, and what to write instead.
struct Mistake {
  std::string_view cause, remedy;
};
constexpr Mistake kFine;

constexpr char kExample[] =
    "write host = \"tcp://127.0.0.1:2376\", or host = \"unix:///var/run/docker.sock\"";

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == ':';
  });
}

// "name:2376", "name", "[::1]:2376"
Mistake read_address(std::string_view text, DockerSection& out) {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    if (end == text.npos) return {"its address has no end", kExample};
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (host.find(':') == host.npos || (!port.empty() && !port.starts_with(':')))
      return {"is not an address and a port", kExample};
  } else if (size_t colon = text.find(':'); colon != text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
    if (port.find(':', 1) != port.npos)
      return {"an IPv6 address stands in brackets", "write host = \"tcp://[::1]:2376\""};
  }
  if (!is_host(host)) return {"is not an address and a port", kExample};
  out.tcp_host = host;
  out.tcp_port = 0;
  if (port.empty()) return kFine;
  port.remove_prefix(1);
  auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), out.tcp_port);
  if (error != std::errc() || rest != port.data() + port.size() || out.tcp_port == 0)
    return {"its port is not a number from 1 to 65535", kExample};
  return kFine;
}

Mistake read_host(std::string_view text, DockerSection& out) {
  if (text.starts_with("unix://")) {
    out.socket = text.substr(7);
    return out.socket.starts_with('/') ? kFine : Mistake{"must have the path of a unix socket", kExample};
  }
  if (text.starts_with("tcp://")) return read_address(text.substr(6), out);
  return {"must begin with tcp:// or unix://", kExample};
}

Mistake check_files(const DockerSection& docker) {
  const std::string* files[] = {&docker.tls_ca, &docker.tls_cert, &docker.tls_key};
  if (std::ranges::any_of(files, [](const auto* one) { return !one->empty() && !one->starts_with('/'); }))
    return {"files of TLS must be absolute paths, or begin with ~/ where HOME is set",
            "write tls_ca = \"/etc/opensandbox/engine/ca.pem\""};
  if (docker.tls_cert.empty() != docker.tls_key.empty())
    return {"a certificate and its key go together", "name both tls_cert and tls_key, or neither"};
  bool any = !docker.tls_ca.empty() || !docker.tls_cert.empty();
  if (any && docker.tcp_host.empty())
    return {"TLS is for an engine at an address, and a unix socket has none",
            "name the engine with host = \"tcp://127.0.0.1:2376\", or remove the files"};
  if (any && docker.tls_ca.empty())
    return {"whoever answered would be believed", "name in tls_ca who has signed the engine's certificate"};
  if (!docker.tcp_host.empty() && !any && !is_loopback_host(docker.tcp_host))
    return {"without TLS everybody on the way could use the engine, and with it this host",
            "name tls_ca, tls_cert and tls_key, or an engine on 127.0.0.1"};
  return kFine;
}

std::string variable(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

// As Docker's own client, but never without looking at the engine's certificate.
Mistake read_variables(const Environment& environment, DockerSection& out) {
  std::string host = variable(environment, "DOCKER_HOST");
  if (host.empty()) return kFine;
  if (Mistake wrong = read_host(host, out); !wrong.cause.empty()) return wrong;
  std::string directory = variable(environment, "DOCKER_CERT_PATH");
  bool secure = !directory.empty() || !variable(environment, "DOCKER_TLS_VERIFY").empty();
  if (out.tcp_host.empty() || !secure) return kFine;
  if (directory.empty()) directory = expanded_home("~/.docker", environment);
  out.tls_ca = directory + "/ca.pem";
  out.tls_cert = directory + "/cert.pem";
  out.tls_key = directory + "/key.pem";
  return kFine;
}

}  // namespace

std::string expanded_home(std::string path, const Environment& environment) {
  const char* home = environment("HOME");
  if (path.starts_with("~/") && home != nullptr) return home + path.substr(1);
  return path;
}

void read_engine(ConfigFile& file, Section& in, const Environment& environment, Config& config) {
  DockerSection& out = config.docker;
  std::string host;
  in.text("socket", out.socket);
  in.text("host", host);
  if (out.socket.starts_with("unix://")) out.socket.erase(0, 7);
  if (!out.socket.starts_with('/'))
    in.wrong("socket", "must be the path of a unix socket",
             "write socket = \"/var/run/docker.sock\"; an address is named with host");
  in.text("tls_ca", out.tls_ca);
  in.text("tls_cert", out.tls_cert);
  in.text("tls_key", out.tls_key);
  for (std::string* path : {&out.tls_ca, &out.tls_cert, &out.tls_key})
    *path = expanded_home(*path, environment);
  bool has_host = !trim(host).empty();
  bool has_files = !out.tls_ca.empty() || !out.tls_cert.empty() || !out.tls_key.empty();
  if (has_host && in.has("socket"))
    return in.wrong("host", "socket names the engine already", "remove one of the two");
  bool asks_variables = !has_host && !has_files && !in.has("socket") && config.offers("docker");
  Mistake wrong;
  if (has_host) wrong = read_host(trim(host), out);
  if (asks_variables) wrong = read_variables(environment, out);
  if (wrong.cause.empty()) wrong = check_files(out);
  if (!wrong.cause.empty()) {
    if (asks_variables) return wrong_variable(file, "DOCKER_HOST", wrong.cause, wrong.remedy);
    return in.wrong(has_host ? "host" : "tls_ca", wrong.cause, wrong.remedy);
  }
  if (!out.tcp_host.empty() && out.tcp_port == 0) out.tcp_port = out.tls_ca.empty() ? kPlainPort : kTlsPort;
  // A tunnel may begin on loopback, and an engine of this host have another address.
  out.remote = !out.tcp_host.empty() && !is_loopback_host(out.tcp_host);
  out.remote_given = in.has("remote");
  in.boolean("remote", out.remote);
}

}  // namespace osb::server
