#include "execd/joined.h"

#include <memory>

namespace osb::execd {
namespace {

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
  // (http/tunnel.h would wait for that, because a client of the server's may not have read all yet.)
  co_await io::race(pair->over.wait(), gone(pair));
}

}  // namespace

io::Task<Result<void>> read_exactly(io::Socket& socket, std::span<char> into) {
  while (!into.empty()) {
    size_t got = CO_TRY(co_await io::read_some(socket, into));
    if (got == 0) co_return fail(Code::unavailable, "it has gone");
    into = into.subspan(got);
  }
  co_return Result<void>();
}

io::Task<Result<io::Socket>> connect_inside(uint16_t port) {
  auto usual = co_await io::with_deadline(kConnectDeadline, "connect", io::connect_tcp("127.0.0.1", port));
  if (usual) co_return usual;
  auto other = co_await io::with_deadline(kConnectDeadline, "connect", io::connect_tcp("::1", port));
  if (other) co_return other;
  co_return usual;
}

io::Task<> join(io::Socket server, io::Socket inside) {
  auto pair =
      std::make_shared<Pair>(co_await io::asio::this_coro::executor, std::move(server), std::move(inside));
  co_await io::race(move(pair, pair->server, pair->inside), move(pair, pair->inside, pair->server));
}

}  // namespace osb::execd
