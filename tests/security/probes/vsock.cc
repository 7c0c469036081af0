#include <sys/socket.h>

#include "tools.h"

namespace osb::probe {
namespace {

// A virtual machine's line to its hypervisor, which no network namespace holds back. The socket is never
// connected: what listens at the other end is not ours to disturb.
void run(Attempts& a, Args) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    File socket = ::socket(AF_VSOCK, type | SOCK_CLOEXEC, 0);
    if (!socket.ok() && errno == ESOCKTNOSUPPORT) continue;
    a.call("socket(2)", "AF_VSOCK", socket.fd());
  }
  File device = ::open("/dev/vsock", O_RDONLY | O_CLOEXEC);
  a.call("open", "/dev/vsock", device.fd());
}

}  // namespace

extern const Probe probe_vsock = {"vsock", "open a socket to the hypervisor (AF_VSOCK)", nullptr, run};

}  // namespace osb::probe
