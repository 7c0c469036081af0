#pragma once

// Packet rules of one namespace, all in one table of family inet that is ours alone, as netlink messages.
// What is between begin_packet_rules() and end_packet_rules() counts together or not at all. Whoever sends a
// batch asks for the acknowledgement of its last rule: the kernel answers in order, and the end of a batch is
// answered by newer kernels only.

#include <linux/netfilter/nf_tables.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "sys/netlink.h"

namespace osb::sys {

inline constexpr char kPacketTable[] = "opensandbox";

// Packets of connections in this process's own network that carry both: who may set one of them (it needs
// CAP_NET_RAW or CAP_NET_ADMIN) does not know the other.
struct PacketBadge {
  uint32_t mark = 0, priority = 0;
};

struct PacketChain {
  const char* name;
  const char* type;  // "nat", "filter"
  uint32_t hook;     // NF_INET_LOCAL_OUT, ...
  int32_t priority;
};

void begin_packet_rules(NetlinkBatch& batch);
void end_packet_rules(NetlinkBatch& batch);
void add_packet_table(NetlinkBatch& batch);     // or leaves the one that is there
void remove_packet_table(NetlinkBatch& batch);  // one that is there
// Without the rules it may have. The chain itself stays: to take one away the kernel waits until every cpu
// has passed by, ten milliseconds and more.
void add_packet_chain(NetlinkBatch& batch, const PacketChain& chain);

// One rule of a chain: expressions, of which each must hold, and what then happens. Complete when it is gone.
class PacketRule {
 public:
  PacketRule(NetlinkBatch& batch, const char* chain, uint16_t flags = 0);
  ~PacketRule();
  PacketRule(const PacketRule&) = delete;

  PacketRule& family(uint8_t protocol);
  PacketRule& transport(uint8_t protocol);
  PacketRule& to_port(uint16_t port);
  PacketRule& to_address4(std::string_view beginning, nft_cmp_ops how = NFT_CMP_EQ);
  PacketRule& to_address6(std::string_view address);
  PacketRule& to_loopback_device();
  PacketRule& not_from_loopback_device();
  PacketRule& badge(const PacketBadge& badge);
  PacketRule& icmp6_types(uint8_t first, uint8_t last);
  PacketRule& tcp_opening();  // SYN without ACK
  // Of the kernel's table of connections:
  PacketRule& of_new_connection();
  PacketRule& of_turned_connection();  // that was led to another place than it was meant for
  PacketRule& in_answer();             // by the side that did not begin
  PacketRule& connection_mark(uint32_t mark);

  void accept();
  void drop();
  void redirect(uint16_t port);
  void reject();  // the sender hears of it at once
  void mark_connection(uint32_t mark);

 private:
  struct Expression;
  PacketRule& meta(nft_meta_keys key);
  PacketRule& connection(nft_ct_keys key);
  PacketRule& load(nft_payload_bases base, uint32_t offset, uint32_t size);
  PacketRule& mask(std::string_view bits);
  PacketRule& compare(nft_cmp_ops how, std::string_view with);
  void value(uint16_t type, std::string_view bytes);
  void verdict(int code);

  NetlinkBatch& batch_;
  size_t list_ = 0;
};

}  // namespace osb::sys
