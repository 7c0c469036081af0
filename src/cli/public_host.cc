#include "cli/public_host.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "base/fd.h"

namespace osb::cli {
namespace {

// That of the route to the rest of the world: a datagram socket is connected, and nothing is sent.
std::optional<std::string> outbound_address() {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(9);
  at.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1, which is nobody's
  if (!fd.valid() || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) < 0)
    return std::nullopt;
  socklen_t size = sizeof at;
  char text[INET_ADDRSTRLEN];
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) < 0 ||
      !::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text))
    return std::nullopt;
  return text;
}

}  // namespace

bool is_in_container(const server::Environment& environment, const std::string& root) {
  const char* named = environment("container");
  if (named && *named) return true;
  for (const char* file : {"/.dockerenv", "/run/.containerenv"})
    if (::access((root + file).c_str(), F_OK) == 0) return true;
  return false;
}

std::string public_host(const server::Config& config, bool in_container) {
  const std::string& eip = config.server.eip;
  if (!eip.empty()) return eip.substr(0, eip.find_first_of(":/"));
  const std::string& host = config.server.host;
  bool is_any = host.empty() || host == "0.0.0.0" || host == "::";
  // A container's loopback is nobody's but its own.
  bool is_inside = in_container && (is_any || server::is_loopback_host(host));
  if (is_inside && !config.docker.host_ip.empty()) return config.docker.host_ip;
  if (!is_any) return host;
  return outbound_address().value_or("127.0.0.1");
}

}  // namespace osb::cli
