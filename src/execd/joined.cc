#include "execd/joined.h"

#include "http/tunnel.h"

namespace osb::execd {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(10);

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

io::Task<> join(io::Socket server, io::Socket inside) { co_await http::tunnel(server, "", inside, ""); }

}  // namespace osb::execd
