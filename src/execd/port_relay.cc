#include "execd/port_relay.h"

#include "base/clock.h"
#include "execd/joined.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);

io::Task<Result<uint16_t>> read_port(io::Socket& socket) {
  char bytes[kPortBytes];
  CO_TRY(co_await read_exactly(socket, bytes));
  co_return static_cast<uint16_t>(static_cast<unsigned char>(bytes[0]) << 8 |
                                  static_cast<unsigned char>(bytes[1]));
}

io::Task<> relay(io::Socket server) {
  auto port = co_await io::with_deadline(kPatience, "the server", read_port(server));
  if (!port) co_return;
  auto inside = co_await connect_inside(*port);
  int error = 0;
  if (!inside) error = inside.error().sys_errno != 0 ? inside.error().sys_errno : ETIMEDOUT;
  const char answer = static_cast<char>(error);
  auto told = co_await io::with_deadline(kPatience, "the server", io::write_all(server, {&answer, 1}));
  if (!told || !inside) co_return;
  co_await join(std::move(server), std::move(*inside));
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
