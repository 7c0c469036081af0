#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

Answer connect_abstract(int type, const std::string& name) {
  File socket = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (!socket.ok()) return Answer(-1);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return Answer(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address),
                          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)));
}

// Abstract names have no file and no permission bits: only the network namespace keeps them apart.
void run(Attempts& a, Args names) {
  if (names.empty()) return a.skipped("no name of an abstract socket outside was given");
  const std::string table = read_file("/proc/net/unix", 1 << 20).value_or("");
  for (const std::string name : names) {
    if (table.find(" @" + name + "\n") != std::string::npos) a.got("sees the host's socket @" + name);
    a.call("connect(2)", "@" + name, connect_abstract(SOCK_STREAM, name));
  }
  a.stopped("no abstract socket of the host is listed");
}

}  // namespace

extern const Probe probe_abstract_sockets = {
    "abstract_sockets", "connect to abstract unix sockets of the host (arguments: their names)", nullptr,
    run};

}  // namespace osb::probe
