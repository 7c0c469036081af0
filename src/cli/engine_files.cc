#include "cli/engine_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/log.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

constexpr char kAuthority[] = "OSB_ENGINE_AUTHORITY", kCertificate[] = "OSB_ENGINE_CERTIFICATE",
               kKey[] = "OSB_ENGINE_KEY", kSeccomp[] = "OSB_ENGINE_SECCOMP";
constexpr size_t kMostBytes = 64 << 10;  // the kernel takes no longer variable than twice this

Result<void> hand_on(const server::Config& config, const char* key, const std::string& path,
                     const char* variable) {
  if (path.empty()) return {};
  auto text = read_file(path, kMostBytes);
  if (!text) {
    return fail(Code::invalid_argument,
                fmt::format("{}: {}: {}; name a file (PEM) that root can read, of at most 64 KiB",
                            config.place(key), key, text.error().message));
  }
  if (::setenv(variable, text->c_str(), 1) < 0) return fail_errno("pass the engine's certificates on");
  return {};
}

// An engine would say so too, at every create.
Result<void> hand_on_profile(const server::Config& config) {
  const std::string& path = config.docker.seccomp_profile;
  auto wrong = [&](const std::string& why) {
    return fail(Code::invalid_argument,
                fmt::format("{}: docker.seccomp_profile: {}; name a profile of system calls (JSON) that "
                            "root can read, of at most 64 KiB",
                            config.place("docker.seccomp_profile"), why));
  };
  auto text = read_file(path, kMostBytes);
  if (!text) return wrong(text.error().message);
  auto value = json::parse(*text);
  const auto* profile = value ? value->if_object() : nullptr;
  if (!profile || !profile->contains("defaultAction")) return wrong(path + " is no profile");
  if (::setenv(kSeccomp, json::print(*value).c_str(), 1) < 0) return fail_errno("pass the profile on");
  return {};
}

std::string inherited(const char* variable) {
  const char* text = ::getenv(variable);
  return text ? text : "";
}

struct TlsTexts {
  std::string authority, certificate, key;
};

Result<std::optional<docker::TcpEngine>> engine_of(const server::Config& config, const TlsTexts& texts) {
  const server::DockerSection& in = config.docker;
  if (in.tcp_host.empty()) return std::optional<docker::TcpEngine>();
  docker::TcpEngine out{.host = in.tcp_host, .port = in.tcp_port};
  if (in.tls_ca.empty()) return out;
  auto told = [](Error error) {
    return std::unexpected(Error{Code::invalid_argument, 0, "TLS to the Docker engine: " + error.message});
  };
  auto trust = tls::Trust::load({texts.authority}, "docker.tls_ca", tls::Trust::Roots::given);
  if (!trust) return told(std::move(trust.error()));
  if (!in.tls_cert.empty()) {
    auto known = trust->identify_by(texts.certificate, texts.key);
    if (!known) return told(std::move(known.error()));
  }
  out.trust = std::make_shared<const tls::Trust>(std::move(*trust));
  return out;
}

}  // namespace

Result<void> hand_on_engine_files(const server::Config& config) {
  const server::DockerSection& docker = config.docker;
  if (!config.offers("docker")) return {};
  TRY(hand_on(config, "docker.tls_ca", docker.tls_ca, kAuthority));
  TRY(hand_on(config, "docker.tls_cert", docker.tls_cert, kCertificate));
  TRY(hand_on(config, "docker.tls_key", docker.tls_key, kKey));
  if (!seccomp_file(config).empty()) TRY(hand_on_profile(config));
  struct stat info{};
  if (!docker.tls_key.empty() && ::stat(docker.tls_key.c_str(), &info) == 0 && (info.st_mode & S_IROTH) != 0)
    log::warn("everybody on this host can read docker.tls_key, and use the engine with it",
              {{"remedy", "chmod 600"}});
  return {};
}

Result<std::optional<docker::TcpEngine>> inherited_engine(const server::Config& config) {
  return engine_of(config, {inherited(kAuthority), inherited(kCertificate), inherited(kKey)});
}

Result<std::optional<docker::TcpEngine>> engine_with_files(const server::Config& config) {
  const server::DockerSection& docker = config.docker;
  TlsTexts texts;
  if (!docker.tls_ca.empty()) texts.authority = TRY(in_context("docker.tls_ca", read_file(docker.tls_ca)));
  if (!docker.tls_cert.empty()) {
    texts.certificate = TRY(in_context("docker.tls_cert", read_file(docker.tls_cert)));
    texts.key = TRY(in_context("docker.tls_key", read_file(docker.tls_key)));
  }
  return engine_of(config, texts);
}

std::string seccomp_file(const server::Config& config) {
  const std::string& profile = config.docker.seccomp_profile;
  return profile.starts_with('/') ? profile : "";
}

std::string inherited_seccomp_profile(const server::Config& config) {
  return seccomp_file(config).empty() ? config.docker.seccomp_profile : inherited(kSeccomp);
}

}  // namespace osb::cli
