#include <linux/netlink.h>
#include <sys/socket.h>

#include "tools.h"

namespace osb::probe {
namespace {

struct Source {
  const char* name;
  int protocol;
  unsigned groups;
};
// Device events go to every network namespace that belongs to the host's user namespace, and anybody there
// may listen.
constexpr Source kSources[] = {
    {"device events", NETLINK_KOBJECT_UEVENT, 1}, {"udev's events", NETLINK_KOBJECT_UEVENT, 2},
    {"process events", NETLINK_CONNECTOR, 1},     {"audit records", NETLINK_AUDIT, 1},
    {"SCSI events", NETLINK_SCSITRANSPORT, 1},    {"SELinux events", NETLINK_SELINUX, 1},
};

void run(Attempts& a, Args) {
  for (const Source& source : kSources) {
    File socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, source.protocol);
    if (!socket.ok()) {
      a.call("socket(2)", source.name, -1);
      continue;
    }
    sockaddr_nl address = {};
    address.nl_family = AF_NETLINK, address.nl_groups = source.groups;
    a.call("bind(2)", source.name,
           ::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  }
}

}  // namespace

extern const Probe probe_netlink_events = {
    "netlink_events", "listen to events of the host's devices, processes and audit log", nullptr, run};

}  // namespace osb::probe
