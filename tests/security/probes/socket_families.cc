#include <linux/if_alg.h>
#include <sys/socket.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

struct Family {
  const char* name;
  int family, type, protocol;
};
// Families and protocols that no sandboxed program needs, whose kernel code has been a source of holes and is
// often loaded by nothing but the attempt.
constexpr Family kFamilies[] = {
    {"AF_ALG", AF_ALG, SOCK_SEQPACKET, 0},
    {"AF_KEY", AF_KEY, SOCK_RAW, 2},
    {"SCTP", AF_INET, SOCK_SEQPACKET, 132},
    {"SCTP stream", AF_INET, SOCK_STREAM, 132},
    {"DCCP", AF_INET, 6, 33},
    {"L2TP", AF_INET, SOCK_DGRAM, 115},
    {"SMC", AF_INET, SOCK_STREAM, 256},
    {"AF_XDP", AF_XDP, SOCK_RAW, 0},
    {"AF_CAN", AF_CAN, SOCK_RAW, 1},
    {"AF_BLUETOOTH", AF_BLUETOOTH, SOCK_RAW, 1},
    {"AF_TIPC", AF_TIPC, SOCK_STREAM, 0},
    {"AF_RDS", AF_RDS, SOCK_SEQPACKET, 0},
    {"AF_KCM", AF_KCM, SOCK_DGRAM, 0},
    {"AF_SMC", AF_SMC, SOCK_STREAM, 0},
    {"AF_LLC", AF_LLC, SOCK_STREAM, 0},
    {"AF_PPPOX", AF_PPPOX, SOCK_STREAM, 0},
    {"AF_RXRPC", AF_RXRPC, SOCK_DGRAM, AF_INET},
    {"AF_PHONET", AF_PHONET, SOCK_DGRAM, 0},
    {"AF_NFC", AF_NFC, SOCK_SEQPACKET, 0},
    {"AF_QIPCRTR", 42, SOCK_DGRAM, 0},
    {"AF_MCTP", 45, SOCK_DGRAM, 0},
    {"AF_X25", AF_X25, SOCK_SEQPACKET, 0},
    {"AF_AX25", AF_AX25, SOCK_DGRAM, 0},
    {"AF_APPLETALK", AF_APPLETALK, SOCK_DGRAM, 0},
    {"AF_IEEE802154", AF_IEEE802154, SOCK_DGRAM, 0},
};

void bind_hash(Attempts& a) {
  File socket = ::socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (!socket.ok()) return;
  sockaddr_alg address = {};
  address.salg_family = AF_ALG;
  std::strcpy(reinterpret_cast<char*>(address.salg_type), "hash");
  std::strcpy(reinterpret_cast<char*>(address.salg_name), "sha256");
  a.call("bind(2)", "AF_ALG sha256",
         ::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

void run(Attempts& a, Args) {
  for (const Family& family : kFamilies) {
    File socket = ::socket(family.family, family.type | SOCK_CLOEXEC, family.protocol);
    a.call("socket(2)", family.name, socket.fd());
  }
  bind_hash(a);
}

}  // namespace

extern const Probe probe_socket_families = {
    "socket_families", "open sockets of rarely used kernel families (AF_ALG, AF_KEY, AF_XDP, AF_CAN, ...)",
    nullptr, run};

}  // namespace osb::probe
