#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr int kWaitMs = 2000;

Answer wait_for(int socket, short events) {
  pollfd entry = {socket, events, 0};
  const int ready = ::poll(&entry, 1, kWaitMs);
  if (ready == 0) errno = ETIMEDOUT;
  return Answer(ready > 0 ? 0 : -1);
}

Answer connect_to(int socket, const sockaddr* address, socklen_t size) {
  if (::connect(socket, address, size) == 0) return Answer(0);
  if (errno != EINPROGRESS) return Answer(-1);
  if (const Answer waited = wait_for(socket, POLLOUT); !waited.worked()) return waited;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return Answer(error == 0 ? 0 : -1, error, 0);
}

// The egress process accepts what the policy then denies, and says so in HTTP; what else answers is the
// service.
Answer ask(int socket) {
  constexpr std::string_view kRequest = "GET /health HTTP/1.0\r\n\r\n";
  (void)::send(socket, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (const Answer waited = wait_for(socket, POLLIN); !waited.worked()) return waited;
  char answer[1024];
  const ssize_t n = ::recv(socket, answer, sizeof answer, 0);
  const std::string_view said(answer, n > 0 ? static_cast<size_t>(n) : 0);
  const bool refused = said.empty() || said.find("X-OpenSandbox-Egress: denied") != std::string_view::npos;
  return Answer(refused ? -1 : 0, ECONNREFUSED, 0);
}

// With a token, only the service's own greeting counts.
Answer reach(int family, const std::string& host, uint16_t port, const std::string& token) {
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  v4.sin_family = AF_INET, v4.sin_port = htons(port);
  v6.sin6_family = AF_INET6, v6.sin6_port = htons(port);
  void* where = family == AF_INET ? static_cast<void*>(&v4.sin_addr) : static_cast<void*>(&v6.sin6_addr);
  if (::inet_pton(family, host.c_str(), where) != 1) return Answer(-1, EINVAL, 0);
  File socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!socket.ok()) return Answer(-1);
  const Answer connected = family == AF_INET
                               ? connect_to(socket.fd(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4)
                               : connect_to(socket.fd(), reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  const bool own_loopback = host == "127.0.0.1" || host == "::1";
  if (connected.worked() && token.empty() && !own_loopback) return ask(socket.fd());
  if (!connected.worked() || token.empty()) return connected;
  if (const Answer waited = wait_for(socket.fd(), POLLIN); !waited.worked()) return waited;
  char greeting[256];
  const ssize_t n = ::recv(socket.fd(), greeting, sizeof greeting, 0);
  const bool same = n > 0 && std::string_view(greeting, static_cast<size_t>(n)).starts_with(token);
  return Answer(same ? 0 : -1, ECONNREFUSED, 0);
}

void run(Attempts& a, Args targets) {
  if (targets.empty()) return a.skipped("no port of a service on the host was given");
  for (const std::string target : targets) {
    const size_t slash = target.find('/');
    const std::string token = slash == std::string::npos ? "" : target.substr(slash + 1);
    std::string address = target.substr(0, slash), host;
    if (const size_t colon = address.rfind(':'); colon != std::string::npos)
      host = address.substr(0, colon), address = address.substr(colon + 1);
    const auto port = static_cast<uint16_t>(std::strtoul(address.c_str(), nullptr, 10));
    if (host.empty()) {
      a.call("connect(2)", "127.0.0.1:" + address, reach(AF_INET, "127.0.0.1", port, token));
      a.call("connect(2)", "[::1]:" + address, reach(AF_INET6, "::1", port, token));
    } else {
      const int family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
      a.call("connect(2)", host + ":" + address, reach(family, host, port, token));
    }
  }
}

}  // namespace

extern const Probe probe_host_loopback = {
    "host_loopback", "connect to services of the host (arguments: [HOST:]PORT[/GREETING])", nullptr, run};

}  // namespace osb::probe
