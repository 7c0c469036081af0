#include "http/tunnel.h"

#include <memory>

namespace osb::http {
namespace {

using io::Task;

constexpr size_t kBuffer = 16 * 1024;
constexpr auto kHalfOpenCheck = std::chrono::seconds(60);
constexpr int kHalfOpenChecks = 10;

struct State {
  int ended = 0;
  uint64_t moved = 0;  // bytes, both directions
  io::StoppedTime stopped;
};

Task<> gone(io::Socket& side) {
  (void)co_await side.async_wait(io::Socket::wait_error, io::asio::as_tuple(io::asio::deferred));
}

// The other direction may never end by itself.
Task<> watch_over(State* state) {
  uint64_t seen = state->moved;
  io::Duration stopped{};
  for (int silent = 0; silent < kHalfOpenChecks; ++silent) {
    co_await io::sleep_for(kHalfOpenCheck);
    if (std::exchange(seen, state->moved) != state->moved) silent = 0;
    io::Duration now = state->stopped ? state->stopped() : stopped;
    if (std::exchange(stopped, now) != now) silent = 0;
  }
}

// To the other side. Returns when the whole tunnel is to end; race() then cancels the other direction.
//
// `b` may be through with `a` in the middle of what that sends, and its last words are on their way: then the
// rest is read and thrown away, because a socket that is closed with something unread takes back what its
// other side has not read yet.
Task<> from_a_to_b(io::Socket& a, io::Socket& b, std::string first, State* state) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  bool heard = (co_await io::write_all(b, first)).has_value();
  while (true) {
    auto got = co_await io::read_some(a, {buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (!heard) continue;
    state->moved += *got;
    heard = (co_await io::write_all(b, std::string_view(buffer.get(), *got))).has_value();
  }
  boost::system::error_code ignored;
  b.shutdown(io::Socket::shutdown_send, ignored);
  if (++state->ended == 2) co_return;
  // One that has closed, and not only said all, reads nothing any more.
  co_await io::race(watch_over(state), gone(a));
}

Task<> from_b_to_a(io::Socket& b, io::Socket& a, std::string first, State* state) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  if (!co_await io::write_all(a, first)) co_return;
  while (true) {
    auto got = co_await io::read_some(b, {buffer.get(), kBuffer});
    if (!got || *got == 0) break;
    state->moved += *got;
    if (!co_await io::write_all(a, std::string_view(buffer.get(), *got))) co_return;
  }
  boost::system::error_code ignored;
  a.shutdown(io::Socket::shutdown_send, ignored);
  if (++state->ended == 2) co_return;
  co_await watch_over(state);
}

}  // namespace

Task<> tunnel(io::Socket& a, std::string from_a, io::Socket& b, std::string from_b, io::StoppedTime stopped) {
  State state;
  state.stopped = std::move(stopped);
  co_await io::race(from_a_to_b(a, b, std::move(from_a), &state),
                    from_b_to_a(b, a, std::move(from_b), &state));
}

}  // namespace osb::http
