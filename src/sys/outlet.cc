#include "sys/outlet.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <string_view>

#include "sys/netlink.h"
#include "sys/packet_rules.h"

namespace osb::sys {
namespace {

constexpr uint32_t kLoopbackIndex = 1;  // lo is the first device of every namespace
constexpr char kAddress4[] = "10.0.2.15";
constexpr char kAddress6[] = "fd00:6f73:62::15";
// A chain that says, by being there, that the rules lead to another port than the usual one.
constexpr char kMoved[] = "moved";
constexpr char kTurn[] = "turn", kRefuse[] = "refuse";
constexpr uint16_t kDnsPort = 53;
// What a sandbox can have waiting; more have to try again, as with any busy server.
constexpr int kBacklog = 512;

std::string address_bytes(int family, const char* text) {
  std::string bytes(family == AF_INET ? 4 : 16, '\0');
  ::inet_pton(family, text, bytes.data());
  return bytes;
}

bool has_ipv6() { return Fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)).valid(); }

void add_address(NetlinkBatch& batch, int family, const std::string& address) {
  struct ifaddrmsg head{};
  head.ifa_family = static_cast<uint8_t>(family);
  head.ifa_prefixlen = static_cast<uint8_t>(address.size() * 8);
  head.ifa_flags = IFA_F_NODAD | IFA_F_PERMANENT;
  head.ifa_scope = RT_SCOPE_UNIVERSE;
  head.ifa_index = kLoopbackIndex;
  batch.begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, head);
  batch.attribute(IFA_LOCAL, address);
  batch.attribute(IFA_ADDRESS, address);
  batch.end();
}

void add_default_route(NetlinkBatch& batch, int family, const std::string& source) {
  struct rtmsg head{};
  head.rtm_family = static_cast<uint8_t>(family);
  head.rtm_table = RT_TABLE_MAIN;
  head.rtm_protocol = RTPROT_BOOT;
  head.rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  // IPv6 makes a route through a loopback device one that rejects, unless it is called local.
  head.rtm_type = family == AF_INET ? RTN_UNICAST : RTN_LOCAL;
  batch.begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, head);
  batch.number(RTA_OIF, kLoopbackIndex);
  batch.attribute(RTA_PREFSRC, source);
  batch.end();
}

void add_mark(NetlinkBatch& batch) {
  struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWCHAIN, NLM_F_CREATE, head);
  batch.text(NFTA_CHAIN_TABLE, kPacketTable);
  batch.text(NFTA_CHAIN_NAME, kMoved);
  batch.end();
}

void accept_own_addresses(NetlinkBatch& batch, const char* chain) {
  PacketRule(batch, chain)
      .family(NFPROTO_IPV4)
      .to_address4(address_bytes(AF_INET, "127.0.0.1").substr(0, 1))
      .accept();
  PacketRule(batch, chain).family(NFPROTO_IPV4).to_address4(address_bytes(AF_INET, kAddress4)).accept();
  PacketRule(batch, chain).family(NFPROTO_IPV6).to_address6(address_bytes(AF_INET6, "::1")).accept();
  PacketRule(batch, chain).family(NFPROTO_IPV6).to_address6(address_bytes(AF_INET6, kAddress6)).accept();
}

bool has_chain(const char* name) {
  NetlinkBatch batch;
  struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETCHAIN, NLM_F_ACK, head);
  batch.text(NFTA_CHAIN_TABLE, kPacketTable);
  batch.text(NFTA_CHAIN_NAME, name);
  batch.end();
  return batch.transact(NETLINK_NETFILTER, "look for a chain").has_value();
}

// The two chains, all at once in place of whatever is there.
Result<void> install_rules(uint16_t port) {
  NetlinkBatch batch;
  begin_packet_rules(batch);
  add_packet_table(batch);
  if (port != kOutletPort) add_mark(batch);
  add_packet_chain(batch, {kTurn, "nat", NF_INET_LOCAL_OUT, -100});
  // 127.0.0.1 is what resolvers ask where nothing is configured; other loopback addresses are the sandbox's.
  std::string loopback = address_bytes(AF_INET, "127.0.0.1");
  PacketRule(batch, kTurn)
      .family(NFPROTO_IPV4)
      .to_address4(loopback, NFT_CMP_NEQ)
      .to_address4(loopback.substr(0, 1))
      .accept();
  PacketRule(batch, kTurn).transport(IPPROTO_UDP).to_port(kDnsPort).redirect(port);
  PacketRule(batch, kTurn).transport(IPPROTO_TCP).to_port(kDnsPort).redirect(port);
  accept_own_addresses(batch, kTurn);
  PacketRule(batch, kTurn).transport(IPPROTO_TCP).redirect(port);
  // What was turned has a loopback address by now. The rest is QUIC, ping and other protocols.
  add_packet_chain(batch, {kRefuse, "filter", NF_INET_LOCAL_OUT, 0});
  accept_own_addresses(batch, kRefuse);
  // Answered after everything before it; the end of a batch is answered by newer kernels only.
  PacketRule(batch, kRefuse, NLM_F_ACK).reject();
  end_packet_rules(batch);
  return batch.transact(NETLINK_NETFILTER, "install packet rules");
}

Result<Fd> bound_socket(int family, int type, uint16_t port) {
  Fd socket(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return fail_errno("socket of an outlet");
  // Connections of a holder that was killed are still on their way to their end.
  int on = 1;
  if (type == SOCK_STREAM) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage storage{};
  socklen_t size = 0;
  // Loopback addresses: an answer from any other one would not be translated back.
  if (family == AF_INET) {
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size = sizeof *address;
  } else {
    auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(port);
    address->sin6_addr = in6addr_loopback;
    size = sizeof *address;
  }
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&storage), size) < 0)
    return fail_errno("bind a socket of an outlet");
  if (type == SOCK_STREAM && ::listen(socket.get(), kBacklog) < 0)
    return fail_errno("listen on a socket of an outlet");
  return socket;
}

Result<uint16_t> port_of(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) < 0)
    return fail_errno("getsockname");
  return ntohs(address.sin_port);
}

}  // namespace

Result<Outlet> open_outlet_sockets(uint16_t& port) {
  Outlet outlet;
  outlet.push_back(TRY(bound_socket(AF_INET, SOCK_STREAM, port)));
  if (port == 0) port = TRY(port_of(outlet[0].get()));
  outlet.push_back(TRY(bound_socket(AF_INET, SOCK_DGRAM, port)));
  if (!has_ipv6()) return outlet;
  auto tcp6 = bound_socket(AF_INET6, SOCK_STREAM, port);
  // The kernel has it, but somebody switched it off.
  if (!tcp6 && tcp6.error().sys_errno == EADDRNOTAVAIL) return outlet;
  outlet.push_back(TRY(std::move(tcp6)));
  outlet.push_back(TRY(bound_socket(AF_INET6, SOCK_DGRAM, port)));
  return outlet;
}

namespace {

// Whether route_through_loopback() was ever done here.
bool has_address() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  ::inet_pton(AF_INET, kAddress4, &own.sin_addr);
  return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) == 0;
}

// Devices that some kernels put into every namespace are down, and lead nowhere.
Result<bool> has_nothing_but_loopback() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("socket");
  struct if_nameindex* devices = ::if_nameindex();
  if (devices == nullptr) return fail_errno("list the devices of a network namespace");
  bool nothing = true;
  for (struct if_nameindex* device = devices; device->if_index != 0 && nothing; ++device) {
    if (device->if_index == kLoopbackIndex) continue;
    struct ifreq asked{};
    std::string_view(device->if_name).copy(asked.ifr_name, sizeof asked.ifr_name - 1);
    nothing = ::ioctl(socket.get(), SIOCGIFFLAGS, &asked) == 0 && (asked.ifr_flags & IFF_UP) == 0;
  }
  ::if_freenameindex(devices);
  return nothing;
}

Result<Outlet> open_elsewhere() {
  constexpr int kTries = 16;
  for (int i = 0;; ++i) {
    uint16_t port = 0;
    auto outlet = open_outlet_sockets(port);
    if (!outlet && i < kTries && outlet.error().sys_errno == EADDRINUSE) continue;
    if (outlet) TRY(install_rules(port));
    return outlet;
  }
}

}  // namespace

Result<void> route_through_loopback() {
  NetlinkBatch batch;
  std::string own4 = address_bytes(AF_INET, kAddress4), own6 = address_bytes(AF_INET6, kAddress6);
  add_address(batch, AF_INET, own4);
  add_default_route(batch, AF_INET, own4);
  TRY(batch.transact(NETLINK_ROUTE, "give lo an address and a route"));
  if (!has_ipv6()) return {};
  NetlinkBatch batch6;
  add_address(batch6, AF_INET6, own6);
  add_default_route(batch6, AF_INET6, own6);
  // Where somebody switched it off, sandboxes do without; what goes by IPv6 has no way then.
  (void)batch6.transact(NETLINK_ROUTE, "give lo an IPv6 address and a route");
  return {};
}

Result<Outlet> open_outlet_here(OutletFor what) {
  if (what == OutletFor::first) {
    if (!TRY(has_nothing_but_loopback()) || has_address())
      return fail(Code::permission_denied, "there is something in this network already");
    TRY(route_through_loopback());
    what = OutletFor::fresh;
  }
  // Sockets would be of no use: nothing has a route to them.
  if (what == OutletFor::again && !has_address())
    return fail_errno("it was made by a version of the service that gave sandboxes no network", ENETUNREACH);
  if (what == OutletFor::again && has_chain(kMoved)) return open_elsewhere();
  // The rules could not be made when the namespace was; they are tried once more.
  if (what == OutletFor::again && !has_chain(kTurn)) what = OutletFor::fresh;
  uint16_t port = kOutletPort;
  auto outlet = open_outlet_sockets(port);
  if (what == OutletFor::again && !outlet && outlet.error().sys_errno == EADDRINUSE) return open_elsewhere();
  if (what == OutletFor::fresh && outlet) TRY(install_rules(port));
  return outlet;
}

}  // namespace osb::sys
