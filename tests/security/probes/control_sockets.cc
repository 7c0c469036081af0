#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr const char* kWellKnown[] = {
    "/run/docker.sock",          "/var/run/docker.sock",        "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",       "/run/podman/podman.sock",     "/run/buildkit/buildkitd.sock",
    "/run/systemd/private",      "/run/dbus/system_bus_socket", "/run/snapd.socket",
    "/run/libvirt/libvirt-sock",
};

Answer connect_to(const std::string& path) {
  File socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Answer(-1, ENAMETOOLONG, 0);
  std::strcpy(address.sun_path, path.c_str());
  return Answer(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

void run(Attempts& a, Args paths) {
  if (paths.empty()) return a.skipped("no path of a control socket outside was given");
  for (const char* path : kWellKnown) a.call("connect(2)", path, connect_to(path));
  for (const char* path : paths) {
    a.call("connect(2)", path, connect_to(path));
    // A long path can still be reached through a link.
    a.call("connect(2)", "through /proc/1/root", connect_to(std::string("/proc/1/root") + path));
  }
  // Sockets that nobody told us about are only looked at, not talked to.
  for (const char* top : {"/run", "/var/run", "/tmp", "/var/lib", "/dev", "/opt"}) {
    walk(top, 4, [&](const std::string& path) {
      struct stat about;
      if (::lstat(path.c_str(), &about) == 0 && S_ISSOCK(about.st_mode) && ::access(path.c_str(), W_OK) == 0)
        a.got("a socket can be written to: " + path);
      return true;
    });
  }
}

}  // namespace

extern const Probe probe_control_sockets = {
    "control_sockets",
    "reach control sockets: container engines, the system bus, ours (arguments: their paths)", nullptr, run};

}  // namespace osb::probe
