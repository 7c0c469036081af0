#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tools.h"

namespace osb::probe {
namespace {

struct Kind {
  const char* name;
  int family, type, protocol;
};
const Kind kKinds[] = {
    {"AF_PACKET raw", AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)},
    {"AF_PACKET datagram", AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL)},
    {"AF_PACKET raw, no protocol", AF_PACKET, SOCK_RAW, 0},
    {"IPv4 raw ICMP", AF_INET, SOCK_RAW, IPPROTO_ICMP},
    {"IPv4 raw TCP", AF_INET, SOCK_RAW, IPPROTO_TCP},
    {"IPv4 raw", AF_INET, SOCK_RAW, IPPROTO_RAW},
    {"IPv6 raw ICMP", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
    {"IPv6 raw", AF_INET6, SOCK_RAW, IPPROTO_RAW},
};

void run(Attempts& a, Args) {
  for (const Kind& kind : kKinds) {
    File socket = ::socket(kind.family, kind.type | SOCK_CLOEXEC, kind.protocol);
    a.call("socket(2)", kind.name, socket.fd());
  }
}

}  // namespace

extern const Probe probe_raw_sockets = {"raw_sockets", "open packet and raw IP sockets", nullptr, run};

}  // namespace osb::probe
