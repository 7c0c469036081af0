#include "io/stream_end.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "base/ids.h"

namespace osb::io {
namespace {

// In the abstract namespace: no file, and gone with the socket.
constexpr std::string_view kBroken("\0opensandbox-broken-", 20);

}  // namespace

void mark_broken(Socket& half) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::string text = std::string(kBroken) + new_hex_id();
  std::memcpy(name.sun_path, text.data(), text.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  (void)::bind(half.native_handle(), reinterpret_cast<sockaddr*>(&name), size);
}

Result<size_t> end_of_stream(Socket& socket) {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  if (::getpeername(socket.native_handle(), reinterpret_cast<sockaddr*>(&name), &size) < 0) return 0;
  if (name.sun_family != AF_UNIX || size < offsetof(sockaddr_un, sun_path) + kBroken.size()) return 0;
  if (std::string_view(name.sun_path, kBroken.size()) != kBroken) return 0;
  return std::unexpected(Error{Code::unavailable, ECONNABORTED, "read: the connection broke"});
}

}  // namespace osb::io
