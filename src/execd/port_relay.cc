#include "execd/port_relay.h"

#include <memory>

#include "base/clock.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kConnectDeadline = std::chrono::seconds(10);
constexpr size_t kBuffer = 16 * 1024;

struct Pair {
  Pair(const io::Executor& executor, io::Socket server_, io::Socket inside_)
      : server(std::move(server_)), inside(std::move(inside_)), over(executor) {}
  io::Socket server, inside;
  int ended = 0;
  io::Event over;
};
using PairPtr = std::shared_ptr<Pair>;

io::Task<> gone(PairPtr pair) {
  (void)co_await pair->server.async_wait(io::Socket::wait_error, io::asio::as_tuple(io::asio::deferred));
}

// A direction that came to its end lets the other one go on.
io::Task<> move(PairPtr pair, io::Socket& from, io::Socket& to) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  while (true) {
    auto got = co_await io::read_some(from, {buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (!co_await io::write_all(to, std::string_view(buffer.get(), *got))) co_return;
  }
  boost::system::error_code ignored;
  to.shutdown(io::Socket::shutdown_send, ignored);
  if (++pair->ended == 2) pair->over.set();
  // The server may have closed and not only have said all: then nobody reads what a program still writes.
  co_await io::race(pair->over.wait(), gone(pair));
}

io::Task<Result<uint16_t>> read_port(io::Socket& socket) {
  unsigned char bytes[kPortBytes];
  size_t have = 0;
  while (have < kPortBytes) {
    size_t got =
        CO_TRY(co_await io::read_some(socket, {reinterpret_cast<char*>(bytes) + have, kPortBytes - have}));
    if (got == 0) co_return fail(Code::unavailable, "it has gone");
    have += got;
  }
  co_return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

io::Task<> relay(io::Socket server) {
  auto port = co_await io::with_deadline(kPatience, "the server", read_port(server));
  if (!port) co_return;
  auto inside = co_await io::with_deadline(kConnectDeadline, "connect", io::connect_tcp("127.0.0.1", *port));
  int error = 0;
  if (!inside) error = inside.error().sys_errno != 0 ? inside.error().sys_errno : ETIMEDOUT;
  const char answer = static_cast<char>(error);
  auto told = co_await io::with_deadline(kPatience, "the server", io::write_all(server, {&answer, 1}));
  if (!told || !inside) co_return;
  auto pair =
      std::make_shared<Pair>(co_await io::asio::this_coro::executor, std::move(server), std::move(*inside));
  co_await io::race(move(pair, pair->server, pair->inside), move(pair, pair->inside, pair->server));
}

}  // namespace

io::Task<> relay_ports(io::TaskGroup& tasks, Fd listener) {
  io::Acceptor acceptor(co_await io::asio::this_coro::executor, std::move(listener));
  while (true) {
    auto socket = co_await acceptor.accept();
    if (socket) {
      tasks.spawn(relay(std::move(*socket)));
    } else if (socket.error().code == Code::exhausted) {
      co_await io::sleep_for(milliseconds(100));
    } else {
      co_return;
    }
  }
}

}  // namespace osb::execd
