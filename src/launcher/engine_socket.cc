#include "launcher/engine_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace osb::launcher {

Result<Fd> connect_engine(const std::string& path) {
  struct sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(Code::invalid_argument, "docker.socket must have 1 to 107 bytes: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return fail_errno("unix socket");
  if (::connect(socket.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address) < 0)
    return fail_errno("connect " + path);
  return socket;
}

}  // namespace osb::launcher
