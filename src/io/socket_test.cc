#include "io/socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/this_coro.hpp>

#include "io/testing.h"

namespace osb::io {
namespace {

using namespace std::chrono_literals;
using testing::run;

uint16_t port_of(const Fd& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::pair<Fd, Fd> socket_pair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

Task<> echo_once(Acceptor* acceptor) {
  auto socket = co_await acceptor->accept();
  EXPECT_TRUE(socket.has_value()) << socket.error().message;
  std::array<char, 64> buffer;
  auto n = co_await read_some(*socket, buffer);
  EXPECT_TRUE(n.has_value());
  auto written = co_await write_all(*socket, std::string_view(buffer.data(), *n));
  EXPECT_TRUE(written.has_value());
}

Task<> exchange(Socket socket) {
  auto written = co_await write_all(socket, "hello");
  EXPECT_TRUE(written.has_value());
  std::array<char, 64> buffer;
  auto n = co_await read_some(socket, buffer);
  EXPECT_EQ(std::string_view(buffer.data(), n.value_or(0)), "hello");
  auto end = co_await read_some(socket, buffer);
  EXPECT_EQ(end.value_or(99), 0u);
}

Task<> over_tcp() {
  auto executor = co_await asio::this_coro::executor;
  auto listener = listen_tcp("127.0.0.1", 0, 8);
  EXPECT_TRUE(listener.has_value()) << listener.error().message;
  uint16_t port = port_of(*listener);
  Acceptor acceptor(executor, std::move(*listener));
  TaskGroup group(executor);
  group.spawn(echo_once(&acceptor));
  auto socket = co_await connect_tcp("localhost", port);
  EXPECT_TRUE(socket.has_value()) << socket.error().message;
  EXPECT_EQ(peer_address(*socket), "127.0.0.1");
  co_await exchange(std::move(*socket));

  group.spawn(echo_once(&acceptor));
  Fd raw(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto handed = co_await connect_loopback(std::move(raw), port);
  EXPECT_TRUE(handed.has_value()) << handed.error().message;
  co_await exchange(std::move(*handed));

  acceptor.close();
  auto closed = co_await acceptor.accept();
  EXPECT_EQ(closed.error().code, Code::cancelled);
  auto refused = co_await connect_tcp("127.0.0.1", port);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  co_await group.close();
}
TEST(Socket, TcpRoundTrip) { run(over_tcp()); }

Task<> over_unix() {
  auto executor = co_await asio::this_coro::executor;
  std::string path = ::testing::TempDir() + "osb_socket_test." + std::to_string(::getpid());
  auto listener = listen_unix(path, 8);
  EXPECT_TRUE(listener.has_value()) << listener.error().message;
  auto again = listen_unix(path, 8);
  EXPECT_EQ(again.error().sys_errno, EADDRINUSE);
  Acceptor acceptor(executor, std::move(*listener));
  TaskGroup group(executor);
  group.spawn(echo_once(&acceptor));
  auto socket = co_await connect_unix(path);
  EXPECT_TRUE(socket.has_value()) << socket.error().message;
  EXPECT_EQ(peer_address(*socket), "");
  co_await exchange(std::move(*socket));
  ::unlink(path.c_str());
  auto gone = co_await connect_unix(path);
  EXPECT_EQ(gone.error().code, Code::not_found);
  co_await group.close();
}
TEST(Socket, UnixRoundTrip) { run(over_unix()); }

Task<> accept_later(Acceptor* acceptor, int count) {
  co_await sleep_for(20ms);
  for (int i = 0; i < count; ++i) {
    auto socket = co_await acceptor->accept();
    EXPECT_TRUE(socket.has_value());
  }
}
Task<> full_backlog() {
  auto executor = co_await asio::this_coro::executor;
  std::string path = ::testing::TempDir() + "osb_backlog_test." + std::to_string(::getpid());
  auto listener = listen_unix(path, 0);
  EXPECT_TRUE(listener.has_value());
  Acceptor acceptor(executor, std::move(*listener));
  TaskGroup group(executor);
  group.spawn(accept_later(&acceptor, 3));
  for (int i = 0; i < 3; ++i) {
    auto socket = co_await connect_unix(path);
    EXPECT_TRUE(socket.has_value()) << socket.error().message;
  }
  ::unlink(path.c_str());
  while (group.size() > 0) co_await yield();
}
TEST(Socket, UnixConnectWaitsForAFullQueue) { run(full_backlog()); }

TEST(Socket, RefusesNamesAndLongPaths) {
  EXPECT_EQ(listen_tcp("example.test", 1, 1).error().code, Code::invalid_argument);
  EXPECT_EQ(listen_tcp("", 1, 1).error().code, Code::invalid_argument);
  EXPECT_EQ(listen_tcp("127.1", 1, 1).error().code, Code::invalid_argument);
  EXPECT_EQ(listen_unix(std::string(108, 'a'), 1).error().code, Code::invalid_argument);
  EXPECT_EQ(listen_unix("", 1).error().code, Code::invalid_argument);
}

Task<> read_everything(Socket socket, std::string* out) {
  std::vector<char> buffer(8192);
  while (true) {
    auto n = co_await read_some(socket, buffer);
    if (!n || *n == 0) co_return;
    out->append(buffer.data(), *n);
  }
}

Task<> gathered_write() {
  auto executor = co_await asio::this_coro::executor;
  auto [a, b] = socket_pair();
  auto left = adopt(executor, std::move(a)), right = adopt(executor, std::move(b));
  std::string head = "head ", big(3 << 20, 'b'), tail = " tail", got;
  TaskGroup group(executor);
  group.spawn(read_everything(std::move(*right), &got));
  std::array<std::string_view, 4> pieces{head, "", big, tail};
  auto taken = try_write(*left, pieces);  // more than the socket takes: the rest waits
  EXPECT_TRUE(taken.has_value());
  EXPECT_GT(*taken, head.size());
  EXPECT_LT(*taken, big.size());
  auto written = co_await write_all(*left, pieces, *taken);
  EXPECT_TRUE(written.has_value());
  left->close();
  while (group.size() > 0) co_await yield();
  EXPECT_TRUE(got == head + big + tail);
}
TEST(Socket, WritesPiecesInOrder) { run(gathered_write()); }

Task<> write_to_closed() {
  auto executor = co_await asio::this_coro::executor;
  auto [a, b] = socket_pair();
  auto left = adopt(executor, std::move(a));
  b.reset();
  auto written = co_await write_all(*left, "x");
  EXPECT_EQ(written.error().code, Code::unavailable);
  EXPECT_TRUE(peer_closed(*left));
  co_await wait_peer_closed(*left);
}
TEST(Socket, WriteToClosedPeerIsUnavailable) { run(write_to_closed()); }

Task<> note_closed(Socket* socket, bool* closed) {
  co_await wait_peer_closed(*socket);
  *closed = true;
}
Task<> closing_is_noticed() {
  auto executor = co_await asio::this_coro::executor;
  auto [a, b] = socket_pair();
  auto left = adopt(executor, std::move(a));
  bool closed = false;
  TaskGroup group(executor);
  group.spawn(note_closed(&*left, &closed));
  for (int i = 0; i < 5; ++i) co_await yield();
  EXPECT_FALSE(closed);
  b.reset();
  while (group.size() > 0) co_await yield();
  EXPECT_TRUE(closed);
}
TEST(Socket, WaitPeerClosed) { run(closing_is_noticed()); }

}  // namespace
}  // namespace osb::io
