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

// One direction. Returns when the whole tunnel is to end; race() then cancels the other direction.
Task<> move(io::Socket& from, io::Socket& to, std::string first, State* state) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  if (auto written = co_await io::write_all(to, first); !written) co_return;
  while (true) {
    auto got = co_await io::read_some(from, {buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    state->moved += *got;
    auto written = co_await io::write_all(to, std::string_view(buffer.get(), *got));
    if (!written) co_return;
  }
  boost::system::error_code ignored;
  to.shutdown(io::Socket::shutdown_send, ignored);
  if (++state->ended == 2) co_return;
  // Watch over the other direction, which may never end by itself.
  uint64_t seen = state->moved;
  io::Duration stopped{};
  for (int silent = 0; silent < kHalfOpenChecks; ++silent) {
    co_await io::sleep_for(kHalfOpenCheck);
    if (std::exchange(seen, state->moved) != state->moved) silent = 0;
    io::Duration now = state->stopped ? state->stopped() : stopped;
    if (std::exchange(stopped, now) != now) silent = 0;
  }
}

}  // namespace

Task<> tunnel(io::Socket& a, std::string from_a, io::Socket& b, std::string from_b, io::StoppedTime stopped) {
  State state;
  state.stopped = std::move(stopped);
  co_await io::race(move(a, b, std::move(from_a), &state), move(b, a, std::move(from_b), &state));
}

}  // namespace osb::http
