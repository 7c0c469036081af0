#include "docker/knocking.h"

#include "base/shown.h"

namespace osb::docker {
namespace {

using io::Task;

Task<Result<size_t>> read_some(io::Socket& socket, std::span<char> into) {
  return io::read_some(socket, into);
}
Task<Result<size_t>> read_some(io::ForeignStream& stream, std::span<char> into) {
  return stream.read_some(into);
}
Task<Result<void>> write_all(io::Socket& socket, std::string_view bytes) {
  return io::write_all(socket, bytes);
}
Task<Result<void>> write_all(io::ForeignStream& stream, std::string_view bytes) {
  return stream.write_all(bytes);
}

// Exactly so many: what follows belongs to whoever asked for the connection.
template <class Connection>
Task<Result<std::string>> read_exactly(Connection& connection, size_t size) {
  std::string out(size, '\0');
  for (size_t have = 0; have < size;) {
    size_t got = CO_TRY(co_await read_some(connection, {out.data() + have, size - have}));
    if (got == 0) co_return fail(Code::unavailable, "execd closed the connection");
    have += got;
  }
  co_return out;
}

template <class Connection>
Task<Result<bool>> prove(Connection& connection, std::string secret, knock::Wish wish) {
  std::string challenge = CO_TRY(co_await read_exactly(connection, knock::kChallenge));
  if (!knock::is_challenge(challenge))
    co_return fail(Code::unavailable, "execd is not there: " + shown(challenge));
  std::string request = knock::ask(secret, challenge, wish);
  CO_TRY(co_await write_all(connection, std::string_view(request)));
  std::string said = CO_TRY(co_await read_exactly(connection, knock::kAnswer));
  auto open = knock::read_answer(secret, challenge, request, said);
  if (!open) co_return fail(Code::corrupt, "whoever answers is not the execd of this sandbox");
  co_return *open;
}

}  // namespace

Error nobody_at(knock::Wish wish) {
  return {Code::unavailable, 0, "nothing listens on port " + std::to_string(wish.port) + " inside"};
}

Task<Result<io::Socket>> knock_at(std::string address, uint16_t port, std::string secret, knock::Wish wish) {
  auto socket = CO_TRY(co_await io::connect_tcp(std::move(address), port));
  bool open = CO_TRY(co_await prove(socket, std::move(secret), wish));
  if (!open) co_return std::unexpected(nobody_at(wish));
  co_return socket;
}

Task<Result<bool>> knock_on(io::ForeignStream& stream, std::string secret, knock::Wish wish) {
  return prove(stream, std::move(secret), wish);
}

}  // namespace osb::docker
