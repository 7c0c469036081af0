#include "egress/way_out.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>

#include "sys/pod_outlet.h"

namespace osb::egress {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address socket_address(const IpAddress& address, uint16_t port) {
  Address out;
  if (address.family == IpAddress::Family::v4) {
    auto* to = reinterpret_cast<sockaddr_in*>(&out.storage);
    to->sin_family = AF_INET;
    to->sin_port = htons(port);
    std::copy_n(address.bytes.begin(), 4, reinterpret_cast<uint8_t*>(&to->sin_addr));
    out.size = sizeof *to;
  } else {
    auto* to = reinterpret_cast<sockaddr_in6*>(&out.storage);
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    std::copy_n(address.bytes.begin(), 16, reinterpret_cast<uint8_t*>(&to->sin6_addr));
    out.size = sizeof *to;
  }
  return out;
}

Result<Fd> make_socket(const HostNetwork& host, int family, int type) {
  Fd socket(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return fail_errno("socket");
  if (host.badge) TRY(sys::wear_badge(socket.get(), *host.badge));
  return socket;
}

}  // namespace

io::Task<Result<io::Socket>> connect_tcp(const HostNetwork& host, IpAddress address, uint16_t port) {
  Address to = socket_address(address, port);
  Fd made = CO_TRY(make_socket(host, to.storage.ss_family, SOCK_STREAM));
  io::Socket socket = CO_TRY(io::adopt(co_await io::asio::this_coro::executor, std::move(made)));
  io::asio::generic::stream_protocol::endpoint endpoint(to.get(), to.size);
  auto [error] = co_await socket.async_connect(endpoint, io::asio::as_tuple(io::asio::deferred));
  if (error) {
    std::string where = to_string(address) + ":" + std::to_string(port);
    co_return std::unexpected(io::to_error("connect " + where, error));
  }
  co_return socket;
}

Result<Fd> connect_udp(const HostNetwork& host, const IpAddress& address, uint16_t port) {
  Address to = socket_address(address, port);
  Fd socket = TRY(make_socket(host, to.storage.ss_family, SOCK_DGRAM));
  if (::connect(socket.get(), to.get(), to.size) < 0) return fail_errno("no way there");
  return socket;
}

}  // namespace osb::egress
