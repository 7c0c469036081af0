// Making and reaching listening sockets: the part of socket.h that deals in addresses.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstring>

#include "io/socket.h"

namespace osb::io {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Numeric addresses only: the resolver of a static glibc loads shared libraries, and no caller needs names.
Result<Address> tcp_address(const std::string& host, uint16_t port) {
  Address a;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&a.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&a.storage);
  const std::string numeric = host == "localhost" ? "127.0.0.1" : host;
  if (::inet_pton(AF_INET, numeric.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    a.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, numeric.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    a.size = sizeof *v6;
  } else {
    return fail(Code::invalid_argument, "'" + host + "' is not a numeric address or \"localhost\"");
  }
  return a;
}

Result<Address> unix_address(const std::string& path) {
  Address a;
  auto* un = reinterpret_cast<sockaddr_un*>(&a.storage);
  if (path.empty() || path.size() >= sizeof un->sun_path) {
    return fail(Code::invalid_argument, "socket path '" + path + "' must have 1 to 107 bytes");
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.c_str(), path.size() + 1);
  a.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return a;
}

Result<Fd> stream_socket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket");
  return fd;
}

Result<Fd> listen_on(const std::string& name, const Address& address, int backlog) {
  Fd fd = TRY(stream_socket(address.storage.ss_family));
  int on = 1;
  if (address.storage.ss_family != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.get(), address.size) < 0) return fail_errno("bind " + name);
  if (::listen(fd.get(), backlog) < 0) return fail_errno("listen " + name);
  return fd;
}

Task<Result<Socket>> connect_to(std::string name, Fd fd, Address address) {
  Socket socket = CO_TRY(adopt(co_await asio::this_coro::executor, std::move(fd)));
  asio::generic::stream_protocol::endpoint endpoint(address.get(), address.size);
  auto [error] = co_await socket.async_connect(endpoint, asio::as_tuple(asio::deferred));
  if (error) co_return std::unexpected(to_error("connect " + name, error));
  co_return socket;
}

}  // namespace

Result<Fd> listen_tcp(const std::string& host, uint16_t port, int backlog) {
  return listen_on(host + ":" + std::to_string(port), TRY(tcp_address(host, port)), backlog);
}

Result<Fd> listen_unix(const std::string& path, int backlog) {
  return listen_on(path, TRY(unix_address(path)), backlog);
}

Task<Result<Socket>> connect_unix(std::string path) {
  Address address = CO_TRY(unix_address(path));
  auto executor = co_await asio::this_coro::executor;
  auto pause = std::chrono::milliseconds(1);
  // A full backlog answers EAGAIN at once, and poll() calls the unconnected socket writable, so that Asio's
  // connect would report success. Try again for about five seconds.
  for (int attempt = 0; attempt < 110; ++attempt) {
    Fd fd = CO_TRY(stream_socket(AF_UNIX));
    widen_unix(fd.get());
    if (::connect(fd.get(), address.get(), address.size) == 0) co_return adopt(executor, std::move(fd));
    if (errno != EAGAIN && errno != EINTR) co_return fail_errno("connect " + path);
    co_await sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
  co_return fail(Code::exhausted, "connect " + path + ": the listener's queue stays full");
}

Task<Result<Socket>> connect_tcp(std::string host, uint16_t port) {
  Address address = CO_TRY(tcp_address(host, port));
  Fd fd = CO_TRY(stream_socket(address.storage.ss_family));
  co_return co_await connect_to(host + ":" + std::to_string(port), std::move(fd), address);
}

Task<Result<Socket>> connect_loopback(Fd unconnected, uint16_t port) {
  Address address = CO_TRY(tcp_address("127.0.0.1", port));
  co_return co_await connect_to("127.0.0.1:" + std::to_string(port), std::move(unconnected), address);
}

}  // namespace osb::io
