#include "http/client_presence.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace osb::http {
namespace {

// Twice the way around the world; on loopback the reset is there before the write returns.
constexpr auto kWaitForReset = std::chrono::milliseconds(250);

enum class Seen { nothing, end_of_requests, hang_up };

Seen look(io::Socket& socket) {
  pollfd p{socket.native_handle(), POLLRDHUP, 0};
  if (::poll(&p, 1, 0) == 0) return Seen::nothing;
  return (p.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0 ? Seen::hang_up : Seen::end_of_requests;
}

bool is_unix(io::Socket& socket) {
  int family = 0;
  socklen_t size = sizeof family;
  return ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
         family == AF_UNIX;
}

}  // namespace

Task<bool> client_gone(Wire& wire, bool http_1_1) {
  Seen seen = look(wire.socket());
  if (seen != Seen::end_of_requests) co_return seen == Seen::hang_up;
  if (is_unix(wire.socket())) co_return false;  // there a closed socket is a hang-up
  if (!http_1_1) co_return true;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  auto sent = wire.write_now(std::array{kContinue});
  if (!sent) co_return true;
  if (*sent != kContinue.size()) {
    wire.break_off();  // half a line: no answer can follow
    co_return true;
  }
  // An event would be no simpler: the descriptor is readable from here on whatever happens.
  for (auto pause = std::chrono::milliseconds(1), waited = pause * 0; waited < kWaitForReset; pause *= 2) {
    if (look(wire.socket()) == Seen::hang_up) co_return true;
    co_await io::sleep_for(pause);
    waited += pause;
  }
  co_return look(wire.socket()) == Seen::hang_up;
}

}  // namespace osb::http
