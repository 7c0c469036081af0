#include "docker/knocking.h"

#include <algorithm>

namespace osb::docker {
namespace {

using io::Task;

constexpr size_t kMostWords = 200;

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

std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
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
  if (!knock::is_challenge(challenge)) {
    // An engine that could not start the program says so in its place.
    std::string rest(kMostWords, '\0');
    rest.resize((co_await read_some(connection, rest)).value_or(0));
    co_return fail(Code::unavailable, "execd is not there: " + one_line(challenge + rest));
  }
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
