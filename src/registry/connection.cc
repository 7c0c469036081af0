#include "registry/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace osb::registry {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> look_up(const Url& url) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int status = ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &found);
  if (status != 0)
    return fail(Code::unavailable, "no address of " + url.host + " is known: " + ::gai_strerror(status));
  return Addresses(found);
}

// Whoever does not take a connection within this time is away; an answer may take longer.
constexpr std::chrono::seconds kConnectPatience(8);

void set_patience(int socket, std::chrono::seconds patience) {
  struct timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Result<Fd> connect_to(const addrinfo& address, std::chrono::seconds patience) {
  Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("socket");
  // Holds for connect(2), too. What runs into it says EAGAIN or EINPROGRESS.
  set_patience(socket.get(), std::min(patience, kConnectPatience));
  int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) < 0) {
    if (errno == EINPROGRESS || errno == EAGAIN) return fail(Code::timeout, "no answer in time");
    return std::unexpected(Error{Code::unavailable, errno, errno_text(errno)});
  }
  set_patience(socket.get(), patience);
  return socket;
}

Result<Fd> connect_to(const Url& url, std::chrono::seconds patience) {
  auto addresses = TRY(look_up(url));
  Result<Fd> socket = fail(Code::unavailable, "no address");
  for (const addrinfo* address = addresses.get(); address && !socket; address = address->ai_next)
    socket = connect_to(*address, patience);
  return in_context("connect to " + url.origin(), std::move(socket));
}

// The least that begins a handshake: TLS 1.2, two ciphers, nothing else; whoever wants more says so by TLS.
// In the place of its random bytes are two ends of a line, so that a server of HTTP does not wait for more of
// a request, either.
constexpr char kHello[] =
    "\x16\x03\x01\x00\x2f"                   // a record of 47 bytes
    "\x01\x00\x00\x2b\x03\x03"               // a ClientHello of 43
    "\r\n\r\nDoes anybody speak TLS here?"   // 32 of them
    "\x00\x00\x04\xc0\x2f\x00\x9c\x01\x00";  // no session, the ciphers, no compression
constexpr char kAlert = 21, kHandshake = 22;

}  // namespace

Result<Connection> Connection::open(const Url& url, const tls::Trust* trust, std::chrono::seconds patience) {
  Connection connection(TRY(connect_to(url, patience)));
  if (url.tls) {
    if (!trust) return fail(Code::internal, "TLS without a trust store");
    connection.tls_ = TRY(in_context("TLS with " + url.host,
                                     tls::Session::connect(*trust, connection.socket_.get(), url.host)));
  }
  return connection;
}

Result<size_t> Connection::read(std::span<char> into) {
  if (tls_) return tls_->read(into);
  while (true) {
    ssize_t n = ::read(socket_.get(), into.data(), into.size());
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return fail(Code::timeout, "the registry is silent");
    return fail(Code::unavailable, errno_text(errno));
  }
}

Result<void> Connection::write(std::string_view bytes) {
  if (tls_) return tls_->write(bytes);
  while (!bytes.empty()) {
    ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return fail(Code::timeout, "the registry does not read");
    if (n < 0) return fail(Code::unavailable, errno_text(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<bool> speaks_tls(const Url& url, std::chrono::seconds patience) {
  Fd socket = TRY(connect_to(url, patience));
  char first = 0;
  ssize_t n = ::send(socket.get(), kHello, sizeof kHello - 1, MSG_NOSIGNAL);
  if (n >= 0) {
    do n = ::read(socket.get(), &first, 1);
    while (n < 0 && errno == EINTR);
  }
  if (n > 0) return first == kAlert || first == kHandshake;
  return fail(
      n < 0 && errno == EAGAIN ? Code::timeout : Code::unavailable,
      url.origin() +
          " does not answer a TLS handshake; if it speaks plain HTTP, name it in registry.plain_hosts");
}

}  // namespace osb::registry
