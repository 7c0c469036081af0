#include "sys/pod_outlet.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace osb::sys {
namespace {

constexpr char kTurn[] = "turn", kRefuse[] = "refuse", kLast[] = "last", kCame[] = "came";
constexpr uint16_t kDnsPort = 53;
// Of a connection whose beginning was seen to come from outside. No secret: who may set it may change the
// rules. The same in every life of the process, so that such connections outlive it.
constexpr uint32_t kFromOutside = 0x6f736269;
// Before those of others (-100), who lead lookups past us: some engines have a resolver of their own inside.
constexpr int32_t kBeforeOthers = -110, kAfterAll = 300;
// From listener queries to neighbour advertisements, and listener reports: without them IPv6 finds no
// neighbour. None of them is passed on by a router.
constexpr uint8_t kFirstNeighbour = 130, kLastNeighbour = 136, kListener = 143;

void accept_harmless(NetlinkBatch& batch, const char* chain, const PacketBadge& badge) {
  PacketRule(batch, chain).badge(badge).accept();
  PacketRule(batch, chain).to_loopback_device().accept();
  // Not by UDP: one packet from outside, which nobody can tell from an answer, would open the way to its
  // sender.
  PacketRule(batch, chain).transport(IPPROTO_TCP).in_answer().connection_mark(kFromOutside).accept();
  PacketRule(batch, chain).icmp6_types(kFirstNeighbour, kLastNeighbour).accept();
  PacketRule(batch, chain).icmp6_types(kListener, kListener).accept();
}

Result<void> install(uint16_t port, const PacketBadge& badge) {
  NetlinkBatch batch;
  begin_packet_rules(batch);
  // There is one to remove, whatever was before.
  add_packet_table(batch);
  remove_packet_table(batch);
  add_packet_table(batch);

  add_packet_chain(batch, {kTurn, "nat", NF_INET_LOCAL_OUT, kBeforeOthers});
  PacketRule(batch, kTurn).badge(badge).accept();
  PacketRule(batch, kTurn).transport(IPPROTO_UDP).to_port(kDnsPort).redirect(port);
  PacketRule(batch, kTurn).transport(IPPROTO_TCP).to_port(kDnsPort).redirect(port);
  PacketRule(batch, kTurn).to_loopback_device().accept();
  PacketRule(batch, kTurn).transport(IPPROTO_TCP).redirect(port);

  // A connection that is older than the rules shows itself by a packet in its midst, from either side. Only
  // one that begins counts.
  add_packet_chain(batch, {kCame, "filter", NF_INET_LOCAL_IN, 0});
  PacketRule(batch, kCame)
      .not_from_loopback_device()
      .tcp_opening()
      .of_new_connection()
      .mark_connection(kFromOutside);

  add_packet_chain(batch, {kRefuse, "filter", NF_INET_LOCAL_OUT, 0});
  accept_harmless(batch, kRefuse, badge);
  // By its address it goes to us already, by its device not yet.
  PacketRule(batch, kRefuse).of_turned_connection().accept();
  PacketRule(batch, kRefuse).reject();

  // Where each packet really leaves, also one that is bound to a device, and one that is forwarded for
  // somebody else in the namespace.
  add_packet_chain(batch, {kLast, "filter", NF_INET_POST_ROUTING, kAfterAll});
  accept_harmless(batch, kLast, badge);
  PacketRule(batch, kLast, NLM_F_ACK).drop();
  end_packet_rules(batch);
  return batch.transact(NETLINK_NETFILTER, "install packet rules");
}

}  // namespace

Result<PacketBadge> random_badge() {
  PacketBadge badge;
  // Small numbers are what others use for marks and priorities.
  while (badge.mark < 0x10000 || badge.priority < 0x10000) {
    if (::getrandom(&badge, sizeof badge, 0) != sizeof badge) return fail_errno("getrandom");
  }
  return badge;
}

Result<void> wear_badge(int socket, const PacketBadge& badge) {
  if (::setsockopt(socket, SOL_SOCKET, SO_MARK, &badge.mark, sizeof badge.mark) < 0)
    return fail_errno("mark a socket");
  if (::setsockopt(socket, SOL_SOCKET, SO_PRIORITY, &badge.priority, sizeof badge.priority) < 0)
    return fail_errno("set the priority of a socket");
  return {};
}

Result<Outlet> open_pod_outlet(const PacketBadge& badge) {
  constexpr int kTries = 16;
  uint16_t port = kOutletPort;
  auto outlet = open_outlet_sockets(port);
  for (int i = 0; i < kTries && !outlet && outlet.error().sys_errno == EADDRINUSE; ++i) {
    port = 0;
    outlet = open_outlet_sockets(port);
  }
  // Also without sockets: what nobody hears goes nowhere.
  TRY(install(outlet ? port : kOutletPort, badge));
  return outlet;
}

}  // namespace osb::sys
