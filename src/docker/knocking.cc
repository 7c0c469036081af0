#include "docker/knocking.h"

namespace osb::docker {
namespace {

// Exactly so many: what follows belongs to whoever asked for the connection.
io::Task<Result<std::string>> read_exactly(io::Socket& socket, size_t size) {
  std::string out(size, '\0');
  for (size_t have = 0; have < size;) {
    size_t got = CO_TRY(co_await io::read_some(socket, {out.data() + have, size - have}));
    if (got == 0) co_return fail(Code::unavailable, "execd closed the connection");
    have += got;
  }
  co_return out;
}

}  // namespace

io::Task<Result<io::Socket>> knock_at(std::string address, uint16_t port, std::string secret,
                                      knock::Wish wish) {
  auto socket = CO_TRY(co_await io::connect_tcp(std::move(address), port));
  std::string challenge = CO_TRY(co_await read_exactly(socket, knock::kChallenge));
  std::string request = knock::ask(secret, challenge, wish);
  CO_TRY(co_await io::write_all(socket, std::string_view(request)));
  std::string said = CO_TRY(co_await read_exactly(socket, knock::kAnswer));
  auto open = knock::read_answer(secret, challenge, request, said);
  if (!open) co_return fail(Code::corrupt, "whoever answers is not the execd of this sandbox");
  if (!*open)
    co_return fail(Code::unavailable, "nothing listens on port " + std::to_string(wish.port) + " inside");
  co_return socket;
}

}  // namespace osb::docker
