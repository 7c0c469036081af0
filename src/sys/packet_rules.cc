#include "sys/packet_rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace osb::sys {
namespace {

constexpr uint32_t kLoopbackIndex = 1;  // lo is the first device of every namespace
constexpr uint8_t kAnswering = 1;       // IP_CT_DIR_REPLY, which the header has for C only

constexpr uint16_t message(uint16_t type) { return (NFNL_SUBSYS_NFTABLES << 8) | type; }
constexpr struct nfgenmsg kInet{NFPROTO_INET, NFNETLINK_V0, 0};

void add_batch_mark(NetlinkBatch& batch, uint16_t type) {
  struct nfgenmsg head{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
  batch.begin(type, 0, head);
  batch.end();
}

std::string byte(uint8_t value) { return std::string(1, static_cast<char>(value)); }
std::string big16(uint16_t value) { return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)}; }
// In the machine's order, as the kernel keeps marks, priorities and numbers of devices.
std::string native32(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

}  // namespace

void begin_packet_rules(NetlinkBatch& batch) { add_batch_mark(batch, NFNL_MSG_BATCH_BEGIN); }
void end_packet_rules(NetlinkBatch& batch) { add_batch_mark(batch, NFNL_MSG_BATCH_END); }

void add_packet_table(NetlinkBatch& batch) {
  batch.begin(message(NFT_MSG_NEWTABLE), NLM_F_CREATE, kInet);
  batch.text(NFTA_TABLE_NAME, kPacketTable);
  batch.end();
}

void remove_packet_table(NetlinkBatch& batch) {
  batch.begin(message(NFT_MSG_DELTABLE), 0, kInet);
  batch.text(NFTA_TABLE_NAME, kPacketTable);
  batch.end();
}

void add_packet_chain(NetlinkBatch& batch, const PacketChain& chain) {
  batch.begin(message(NFT_MSG_NEWCHAIN), NLM_F_CREATE, kInet);
  batch.text(NFTA_CHAIN_TABLE, kPacketTable);
  batch.text(NFTA_CHAIN_NAME, chain.name);
  size_t hook = batch.begin_nested(NFTA_CHAIN_HOOK);
  batch.big_number(NFTA_HOOK_HOOKNUM, chain.hook);
  batch.big_number(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(chain.priority));
  batch.end_nested(hook);
  batch.text(NFTA_CHAIN_TYPE, chain.type);
  batch.end();
  batch.begin(message(NFT_MSG_DELRULE), 0, kInet);
  batch.text(NFTA_RULE_TABLE, kPacketTable);
  batch.text(NFTA_RULE_CHAIN, chain.name);
  batch.end();
}

struct PacketRule::Expression {
  Expression(NetlinkBatch& into, const char* name) : batch(into), element(into.begin_nested(NFTA_LIST_ELEM)) {
    batch.text(NFTA_EXPR_NAME, name);
    data = batch.begin_nested(NFTA_EXPR_DATA);
  }
  ~Expression() {
    batch.end_nested(data);
    batch.end_nested(element);
  }
  Expression(const Expression&) = delete;
  NetlinkBatch& batch;
  size_t element, data;
};

PacketRule::PacketRule(NetlinkBatch& batch, const char* chain, uint16_t flags) : batch_(batch) {
  flags |= NLM_F_CREATE | NLM_F_APPEND;
  batch_.begin(message(NFT_MSG_NEWRULE), flags, kInet);
  batch_.text(NFTA_RULE_TABLE, kPacketTable);
  batch_.text(NFTA_RULE_CHAIN, chain);
  list_ = batch_.begin_nested(NFTA_RULE_EXPRESSIONS);
}

PacketRule::~PacketRule() {
  batch_.end_nested(list_);
  batch_.end();
}

PacketRule& PacketRule::family(uint8_t protocol) {
  return meta(NFT_META_NFPROTO).compare(NFT_CMP_EQ, byte(protocol));
}

PacketRule& PacketRule::transport(uint8_t protocol) {
  return meta(NFT_META_L4PROTO).compare(NFT_CMP_EQ, byte(protocol));
}

PacketRule& PacketRule::to_port(uint16_t port) {
  return load(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2).compare(NFT_CMP_EQ, big16(port));
}

PacketRule& PacketRule::to_address4(std::string_view beginning, nft_cmp_ops how) {
  return load(NFT_PAYLOAD_NETWORK_HEADER, 16, static_cast<uint32_t>(beginning.size()))
      .compare(how, beginning);
}

PacketRule& PacketRule::to_address6(std::string_view address) {
  return load(NFT_PAYLOAD_NETWORK_HEADER, 24, 16).compare(NFT_CMP_EQ, address);
}

PacketRule& PacketRule::to_loopback_device() {
  return meta(NFT_META_OIF).compare(NFT_CMP_EQ, native32(kLoopbackIndex));
}

PacketRule& PacketRule::not_from_loopback_device() {
  return meta(NFT_META_IIF).compare(NFT_CMP_NEQ, native32(kLoopbackIndex));
}

PacketRule& PacketRule::badge(const PacketBadge& badge) {
  return meta(NFT_META_MARK)
      .compare(NFT_CMP_EQ, native32(badge.mark))
      .meta(NFT_META_PRIORITY)
      .compare(NFT_CMP_EQ, native32(badge.priority));
}

PacketRule& PacketRule::icmp6_types(uint8_t first, uint8_t last) {
  return transport(IPPROTO_ICMPV6)
      .load(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1)
      .compare(NFT_CMP_GTE, byte(first))
      .compare(NFT_CMP_LTE, byte(last));
}

PacketRule& PacketRule::tcp_opening() {
  constexpr uint8_t kFin = 1, kSyn = 2, kReset = 4, kAck = 16;
  return transport(IPPROTO_TCP)
      .load(NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1)
      .mask(byte(kFin | kSyn | kReset | kAck))
      .compare(NFT_CMP_EQ, byte(kSyn));
}

PacketRule& PacketRule::of_new_connection() {
  constexpr uint32_t kNew = 1U << (IP_CT_NEW + 1);
  return connection(NFT_CT_STATE).mask(native32(kNew)).compare(NFT_CMP_NEQ, native32(0));
}

PacketRule& PacketRule::of_turned_connection() {
  return connection(NFT_CT_STATUS).mask(native32(IPS_DST_NAT)).compare(NFT_CMP_NEQ, native32(0));
}

PacketRule& PacketRule::in_answer() {
  return connection(NFT_CT_DIRECTION).compare(NFT_CMP_EQ, byte(kAnswering));
}

PacketRule& PacketRule::connection_mark(uint32_t mark) {
  return connection(NFT_CT_MARK).compare(NFT_CMP_EQ, native32(mark));
}

void PacketRule::accept() { verdict(NF_ACCEPT); }
void PacketRule::drop() { verdict(NF_DROP); }

void PacketRule::redirect(uint16_t port) {
  {
    Expression immediate(batch_, "immediate");
    batch_.big_number(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    value(NFTA_IMMEDIATE_DATA, big16(port));
  }
  Expression redir(batch_, "redir");
  batch_.big_number(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
}

void PacketRule::reject() {
  Expression reject(batch_, "reject");
  batch_.big_number(NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
  batch_.attribute(NFTA_REJECT_ICMP_CODE, byte(NFT_REJECT_ICMPX_PORT_UNREACH));
}

void PacketRule::mark_connection(uint32_t mark) {
  {
    Expression immediate(batch_, "immediate");
    batch_.big_number(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    value(NFTA_IMMEDIATE_DATA, native32(mark));
  }
  Expression ct(batch_, "ct");
  batch_.big_number(NFTA_CT_KEY, NFT_CT_MARK);
  batch_.big_number(NFTA_CT_SREG, NFT_REG_1);
}

PacketRule& PacketRule::meta(nft_meta_keys key) {
  Expression meta(batch_, "meta");
  batch_.big_number(NFTA_META_DREG, NFT_REG_1);
  batch_.big_number(NFTA_META_KEY, key);
  return *this;
}

PacketRule& PacketRule::connection(nft_ct_keys key) {
  Expression ct(batch_, "ct");
  batch_.big_number(NFTA_CT_DREG, NFT_REG_1);
  batch_.big_number(NFTA_CT_KEY, key);
  return *this;
}

PacketRule& PacketRule::load(nft_payload_bases base, uint32_t offset, uint32_t size) {
  Expression payload(batch_, "payload");
  batch_.big_number(NFTA_PAYLOAD_DREG, NFT_REG_1);
  batch_.big_number(NFTA_PAYLOAD_BASE, base);
  batch_.big_number(NFTA_PAYLOAD_OFFSET, offset);
  batch_.big_number(NFTA_PAYLOAD_LEN, size);
  return *this;
}

PacketRule& PacketRule::mask(std::string_view bits) {
  Expression bitwise(batch_, "bitwise");
  batch_.big_number(NFTA_BITWISE_SREG, NFT_REG_1);
  batch_.big_number(NFTA_BITWISE_DREG, NFT_REG_1);
  batch_.big_number(NFTA_BITWISE_LEN, static_cast<uint32_t>(bits.size()));
  value(NFTA_BITWISE_MASK, bits);
  value(NFTA_BITWISE_XOR, std::string(bits.size(), '\0'));
  return *this;
}

PacketRule& PacketRule::compare(nft_cmp_ops how, std::string_view with) {
  Expression cmp(batch_, "cmp");
  batch_.big_number(NFTA_CMP_SREG, NFT_REG_1);
  batch_.big_number(NFTA_CMP_OP, how);
  value(NFTA_CMP_DATA, with);
  return *this;
}

void PacketRule::value(uint16_t type, std::string_view bytes) {
  size_t data = batch_.begin_nested(type);
  batch_.attribute(NFTA_DATA_VALUE, bytes);
  batch_.end_nested(data);
}

void PacketRule::verdict(int code) {
  Expression immediate(batch_, "immediate");
  batch_.big_number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  size_t data = batch_.begin_nested(NFTA_IMMEDIATE_DATA);
  size_t verdict = batch_.begin_nested(NFTA_DATA_VERDICT);
  batch_.big_number(NFTA_VERDICT_CODE, static_cast<uint32_t>(code));
  batch_.end_nested(verdict);
  batch_.end_nested(data);
}

}  // namespace osb::sys
