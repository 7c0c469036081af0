#include "io/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>

#include "io/stream_end.h"

namespace osb::io {
namespace {

constexpr auto kQuiet = asio::as_tuple(asio::deferred);

size_t total(Pieces pieces) {
  size_t sum = 0;
  for (std::string_view piece : pieces) sum += piece.size();
  return sum;
}

// One sendmsg of everything behind the first `skip` bytes.
ssize_t send_pieces(int fd, Pieces pieces, size_t skip) {
  std::array<iovec, kMaxPieces> parts;
  size_t count = 0;
  for (std::string_view piece : pieces) {
    size_t cut = std::min(skip, piece.size());
    skip -= cut;
    piece.remove_prefix(cut);
    if (piece.empty()) continue;
    parts.at(count++) = {const_cast<char*>(piece.data()), piece.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  while (true) {
    // Most messages are one piece, for which the kernel has less to read.
    ssize_t n = count == 1 ? ::send(fd, parts[0].iov_base, parts[0].iov_len, kFlags)
                           : ::sendmsg(fd, &message, kFlags);
    if (n >= 0 || errno != EINTR) return n;
  }
}

}  // namespace

Result<Socket> adopt(Executor executor, Fd connected) {
  int family = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(connected.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) < 0)
    return fail_errno("adopt socket");
  int protocol = 0;
  if (family == AF_INET || family == AF_INET6) {
    protocol = IPPROTO_TCP;
    // Every write of ours is a whole piece of a message; waiting for more only delays it.
    int on = 1;
    ::setsockopt(connected.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // A peer that vanished without a FIN is noticed some day even on a connection that only reads.
    ::setsockopt(connected.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  Socket socket(executor);
  boost::system::error_code error;
  socket.assign(asio::generic::stream_protocol(family, protocol), connected.get(), error);
  if (error) return std::unexpected(to_error("adopt socket", error));
  connected.release();
  return socket;
}

Acceptor::Acceptor(Executor executor, Fd listener) : fd_(executor) {
  boost::system::error_code error;
  fd_.assign(listener.get(), error);
  if (error) return;  // accept() will say so
  listener.release();
  fd_.non_blocking(true, error);
}

void widen_unix(int fd) {
  int family = 0, size = 1 << 20;
  socklen_t length = sizeof family;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == AF_UNIX)
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

Task<Result<Socket>> Acceptor::accept() {
  while (fd_.is_open()) {
    Fd fd(::accept4(fd_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      widen_unix(fd.get());
      co_return adopt(fd_.get_executor(), std::move(fd));
    }
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
        continue;  // that client is gone; the next one may not be
      case EAGAIN:
        break;
      default:
        co_return fail_errno("accept");
    }
    auto [error] = co_await fd_.async_wait(asio::posix::stream_descriptor::wait_read, kQuiet);
    if (error) co_return std::unexpected(to_error("accept", error));
  }
  co_return fail(Code::cancelled, "accept: the listener is closed");
}

void Acceptor::close() {
  boost::system::error_code ignored;
  fd_.close(ignored);
}

Task<Result<size_t>> read_some(Socket& socket, std::span<char> into) {
  auto [error, n] = co_await socket.async_read_some(asio::buffer(into.data(), into.size()), kQuiet);
  if (error == asio::error::eof) co_return end_of_stream(socket);
  if (error) co_return std::unexpected(to_error("read", error));
  co_return n;
}

Task<Result<void>> write_all(Socket& socket, std::string_view bytes) {
  std::array<std::string_view, 1> pieces{bytes};
  co_return co_await write_all(socket, pieces);
}

Result<size_t> try_write(Socket& socket, Pieces pieces) {
  ssize_t n = send_pieces(socket.native_handle(), pieces, 0);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN) return 0;
  return fail_errno("write");
}

Task<Result<void>> write_all(Socket& socket, Pieces pieces, size_t skip) {
  size_t left = total(pieces) - skip;
  while (left > 0) {
    ssize_t n = send_pieces(socket.native_handle(), pieces, skip);
    if (n >= 0) {
      skip += static_cast<size_t>(n);
      left -= static_cast<size_t>(n);
      continue;
    }
    if (errno != EAGAIN) co_return fail_errno("write");
    auto [error] = co_await socket.async_wait(Socket::wait_write, kQuiet);
    if (error) co_return std::unexpected(to_error("write", error));
  }
  co_return Result<void>{};
}

Result<size_t> try_splice(int pipe, Socket& socket, size_t size) {
  while (true) {
    ssize_t n = ::splice(pipe, nullptr, socket.native_handle(), nullptr, size, SPLICE_F_NONBLOCK);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return fail(Code::internal, "splice: the pipe is empty");
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return fail_errno("splice");
  }
}

Task<Result<void>> splice_all(int pipe, Socket& socket, size_t size) {
  while (size > 0) {
    size_t n = CO_TRY(try_splice(pipe, socket, size));
    size -= n;
    if (n > 0) continue;
    auto [error] = co_await socket.async_wait(Socket::wait_write, kQuiet);
    if (error) co_return std::unexpected(to_error("splice", error));
  }
  co_return Result<void>{};
}

bool peer_closed(Socket& socket) {
  pollfd p{socket.native_handle(), POLLRDHUP, 0};
  return ::poll(&p, 1, 0) != 0;  // an invalid descriptor counts as closed: poll reports POLLNVAL
}

Task<> wait_peer_closed(Socket& socket) {
  while (!peer_closed(socket)) {
    char byte;
    if (::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
      // Unread bytes keep the descriptor readable: waiting for that would spin, so look now and then instead.
      co_await sleep_for(std::chrono::seconds(1));
      continue;
    }
    auto [error] = co_await socket.async_wait(Socket::wait_read, kQuiet);
    if (error) co_return;
  }
}

std::string peer_address(Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket.native_handle(), reinterpret_cast<sockaddr*>(&address), &size) < 0) return {};
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  }
  return text;
}

Task<Result<void>> wait_readable(asio::posix::stream_descriptor& fd) {
  auto [error] = co_await fd.async_wait(asio::posix::stream_descriptor::wait_read, kQuiet);
  if (error) co_return std::unexpected(to_error("wait", error));
  co_return Result<void>{};
}

}  // namespace osb::io
