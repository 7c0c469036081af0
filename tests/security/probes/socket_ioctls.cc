#include <linux/if_bridge.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

// Requests on any socket for which the kernel loads a module (bridge, 8021q) before it asks who wants it.
// Both ask for information only.
void run(Attempts& a, Args) {
  for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
    File socket = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!socket.ok()) continue;
    unsigned long version[4] = {BRCTL_GET_VERSION};
    a.gate("ioctl(2)", "SIOCGIFBR", ::ioctl(socket.fd(), SIOCGIFBR, version));
    vlan_ioctl_args vlan = {};
    vlan.cmd = GET_VLAN_REALDEV_NAME_CMD;
    std::strcpy(vlan.device1, "osb-none");
    a.gate("ioctl(2)", "SIOCGIFVLAN", ::ioctl(socket.fd(), SIOCGIFVLAN, &vlan));
    a.gate("ioctl(2)", "SIOCGIFVLAN with a high bit",
           ::syscall(SYS_ioctl, socket.fd(), static_cast<unsigned long>(SIOCGIFVLAN) | 1UL << 32, &vlan));
  }
}

}  // namespace

extern const Probe probe_socket_ioctls = {
    "socket_ioctls", "make the kernel load a module by a request on a socket (bridge, VLAN)", nullptr, run};

}  // namespace osb::probe
