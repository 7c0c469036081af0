#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tools.h"

namespace osb::probe {
namespace {

struct MountNamespaceInfo {  // mnt_ns_info of newer headers
  uint32_t size, mounts;
  uint64_t id;
};
constexpr unsigned long kNextMountNamespace = _IOR(0xb7, 11, MountNamespaceInfo);
constexpr unsigned long kPreviousMountNamespace = _IOR(0xb7, 12, MountNamespaceInfo);
constexpr unsigned kPidfdRequests = 10;  // PIDFD_GET_CGROUP_NAMESPACE and those after it

// From a namespace one is in, to the user namespace that owns it, to its parent, to its neighbours.
void run(Attempts& a, Args) {
  for (const std::string kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    File own = ::open(("/proc/self/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC);
    if (!own.ok()) continue;
    File owner = ::ioctl(own.fd(), NS_GET_USERNS);
    a.call("ioctl(2)", "owner of the " + kind + " namespace", owner.fd());
    if (kind == "user" || kind == "pid") {
      File parent = ::ioctl(own.fd(), NS_GET_PARENT);
      a.call("ioctl(2)", "parent of the " + kind + " namespace", parent.fd());
    }
    if (kind != "mnt") continue;
    for (const unsigned long request : {kNextMountNamespace, kPreviousMountNamespace}) {
      MountNamespaceInfo info = {sizeof info, 0, 0};
      File neighbour = ::ioctl(own.fd(), request, &info);
      a.call("ioctl(2)", "neighbour of the mount namespace", neighbour.fd());
    }
  }
  File socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  File network = ::ioctl(socket.fd(), SIOCGSKNS);
  a.call("ioctl(2)", "network namespace of a socket", network.fd());
  File init = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  for (unsigned request = 1; init.ok() && request <= kPidfdRequests; ++request) {
    File reached = ::ioctl(init.fd(), _IO(0xff, request), 0);
    a.call("ioctl(2)", "namespaces of process 1", reached.fd());
  }
}

}  // namespace

extern const Probe probe_namespace_ioctls = {
    "namespace_ioctls", "walk from its own namespaces to those around them", nullptr, run};

}  // namespace osb::probe
