#include "sys/outlet.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "sys/netlink.h"

namespace osb::sys {
namespace {

constexpr uint32_t kLoopbackIndex = 1;  // lo is the first device of every namespace
constexpr char kAddress4[] = "10.0.2.15";
constexpr char kAddress6[] = "fd00:6f73:62::15";
constexpr char kTable[] = "opensandbox";
// A chain that says, by being there, that the rules lead to another port than the usual one.
constexpr char kMoved[] = "moved";
constexpr char kTurn[] = "turn", kRefuse[] = "refuse";
constexpr uint16_t kDnsPort = 53;
// Beyond what the kernel chooses for programs that do not care.
constexpr uint16_t kUsualPort = 64053;
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

// One rule of a chain: expressions, of which each must hold, and what then happens.
class Rule {
 public:
  Rule(NetlinkBatch& batch, const char* chain, uint16_t flags = 0) : batch_(batch) {
    struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
    flags |= NLM_F_CREATE | NLM_F_APPEND;
    batch_.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWRULE, flags, head);
    batch_.text(NFTA_RULE_TABLE, kTable);
    batch_.text(NFTA_RULE_CHAIN, chain);
    list_ = batch_.begin_nested(NFTA_RULE_EXPRESSIONS);
  }
  ~Rule() {
    batch_.end_nested(list_);
    batch_.end();
  }
  Rule(const Rule&) = delete;

  Rule& family(uint8_t protocol) { return meta(NFT_META_NFPROTO).compare(NFT_CMP_EQ, byte(protocol)); }
  Rule& transport(uint8_t protocol) { return meta(NFT_META_L4PROTO).compare(NFT_CMP_EQ, byte(protocol)); }
  Rule& to_port(uint16_t port) {
    return load(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2).compare(NFT_CMP_EQ, big16(port));
  }
  Rule& to_address4(std::string_view beginning, nft_cmp_ops how = NFT_CMP_EQ) {
    return load(NFT_PAYLOAD_NETWORK_HEADER, 16, static_cast<uint32_t>(beginning.size()))
        .compare(how, beginning);
  }
  Rule& to_address6(std::string_view address) {
    return load(NFT_PAYLOAD_NETWORK_HEADER, 24, 16).compare(NFT_CMP_EQ, address);
  }

  void accept() {
    Expression immediate(batch_, "immediate");
    batch_.big_number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = batch_.begin_nested(NFTA_IMMEDIATE_DATA);
    size_t verdict = batch_.begin_nested(NFTA_DATA_VERDICT);
    batch_.big_number(NFTA_VERDICT_CODE, NF_ACCEPT);
    batch_.end_nested(verdict);
    batch_.end_nested(data);
  }
  void redirect(uint16_t port) {
    {
      Expression immediate(batch_, "immediate");
      batch_.big_number(NFTA_IMMEDIATE_DREG, NFT_REG_1);
      value(NFTA_IMMEDIATE_DATA, big16(port));
    }
    Expression redir(batch_, "redir");
    batch_.big_number(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
  }
  // The sender hears of it at once.
  void reject() {
    Expression reject(batch_, "reject");
    batch_.big_number(NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    batch_.attribute(NFTA_REJECT_ICMP_CODE, byte(NFT_REJECT_ICMPX_PORT_UNREACH));
  }

 private:
  struct Expression {
    Expression(NetlinkBatch& into, const char* name)
        : batch(into), element(into.begin_nested(NFTA_LIST_ELEM)) {
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

  static std::string byte(uint8_t value) { return std::string(1, static_cast<char>(value)); }
  static std::string big16(uint16_t value) {
    return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
  }
  void value(uint16_t type, std::string_view bytes) {
    size_t data = batch_.begin_nested(type);
    batch_.attribute(NFTA_DATA_VALUE, bytes);
    batch_.end_nested(data);
  }
  Rule& meta(nft_meta_keys key) {
    Expression meta(batch_, "meta");
    batch_.big_number(NFTA_META_DREG, NFT_REG_1);
    batch_.big_number(NFTA_META_KEY, key);
    return *this;
  }
  Rule& load(nft_payload_bases base, uint32_t offset, uint32_t size) {
    Expression payload(batch_, "payload");
    batch_.big_number(NFTA_PAYLOAD_DREG, NFT_REG_1);
    batch_.big_number(NFTA_PAYLOAD_BASE, base);
    batch_.big_number(NFTA_PAYLOAD_OFFSET, offset);
    batch_.big_number(NFTA_PAYLOAD_LEN, size);
    return *this;
  }
  Rule& compare(nft_cmp_ops how, std::string_view with) {
    Expression cmp(batch_, "cmp");
    batch_.big_number(NFTA_CMP_SREG, NFT_REG_1);
    batch_.big_number(NFTA_CMP_OP, how);
    value(NFTA_CMP_DATA, with);
    return *this;
  }

  NetlinkBatch& batch_;
  size_t list_ = 0;
};

void add_table(NetlinkBatch& batch) {
  struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWTABLE, NLM_F_CREATE, head);
  batch.text(NFTA_TABLE_NAME, kTable);
  batch.end();
}

void add_chain(NetlinkBatch& batch, const char* name, const char* type, int32_t priority) {
  struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWCHAIN, NLM_F_CREATE, head);
  batch.text(NFTA_CHAIN_TABLE, kTable);
  batch.text(NFTA_CHAIN_NAME, name);
  size_t hook = batch.begin_nested(NFTA_CHAIN_HOOK);
  batch.big_number(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
  batch.big_number(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(priority));
  batch.end_nested(hook);
  batch.text(NFTA_CHAIN_TYPE, type);
  batch.end();
  // Without the rules it may have. The chain itself stays: to take one away the kernel waits until every cpu
  // has passed by, ten milliseconds and more.
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_DELRULE, 0, head);
  batch.text(NFTA_RULE_TABLE, kTable);
  batch.text(NFTA_RULE_CHAIN, name);
  batch.end();
}

void add_mark(NetlinkBatch& batch) {
  struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWCHAIN, NLM_F_CREATE, head);
  batch.text(NFTA_CHAIN_TABLE, kTable);
  batch.text(NFTA_CHAIN_NAME, kMoved);
  batch.end();
}

void add_batch_mark(NetlinkBatch& batch, uint16_t type) {
  struct nfgenmsg head{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
  batch.begin(type, 0, head);
  batch.end();
}

void accept_own_addresses(NetlinkBatch& batch, const char* chain) {
  Rule(batch, chain)
      .family(NFPROTO_IPV4)
      .to_address4(address_bytes(AF_INET, "127.0.0.1").substr(0, 1))
      .accept();
  Rule(batch, chain).family(NFPROTO_IPV4).to_address4(address_bytes(AF_INET, kAddress4)).accept();
  Rule(batch, chain).family(NFPROTO_IPV6).to_address6(address_bytes(AF_INET6, "::1")).accept();
  Rule(batch, chain).family(NFPROTO_IPV6).to_address6(address_bytes(AF_INET6, kAddress6)).accept();
}

bool has_chain(const char* name) {
  NetlinkBatch batch;
  struct nfgenmsg head{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETCHAIN, NLM_F_ACK, head);
  batch.text(NFTA_CHAIN_TABLE, kTable);
  batch.text(NFTA_CHAIN_NAME, name);
  batch.end();
  return batch.transact(NETLINK_NETFILTER, "look for a chain").has_value();
}

// The two chains, all at once in place of whatever is there.
Result<void> install_rules(uint16_t port) {
  NetlinkBatch batch;
  add_batch_mark(batch, NFNL_MSG_BATCH_BEGIN);
  add_table(batch);
  if (port != kUsualPort) add_mark(batch);
  add_chain(batch, kTurn, "nat", -100);
  // 127.0.0.1 is what resolvers ask where nothing is configured; other loopback addresses are the sandbox's.
  std::string loopback = address_bytes(AF_INET, "127.0.0.1");
  Rule(batch, kTurn)
      .family(NFPROTO_IPV4)
      .to_address4(loopback, NFT_CMP_NEQ)
      .to_address4(loopback.substr(0, 1))
      .accept();
  Rule(batch, kTurn).transport(IPPROTO_UDP).to_port(kDnsPort).redirect(port);
  Rule(batch, kTurn).transport(IPPROTO_TCP).to_port(kDnsPort).redirect(port);
  accept_own_addresses(batch, kTurn);
  Rule(batch, kTurn).transport(IPPROTO_TCP).redirect(port);
  // What was turned has a loopback address by now. The rest is QUIC, ping and other protocols.
  add_chain(batch, kRefuse, "filter", 0);
  accept_own_addresses(batch, kRefuse);
  // Answered after everything before it; the end of a batch is answered by newer kernels only.
  Rule(batch, kRefuse, NLM_F_ACK).reject();
  add_batch_mark(batch, NFNL_MSG_BATCH_END);
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

// All of one number, so that the rules need not tell them apart. 0: one that is free, which is told.
Result<Outlet> open_sockets(uint16_t& port) {
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

Result<Outlet> open_elsewhere() {
  constexpr int kTries = 16;
  for (int i = 0;; ++i) {
    uint16_t port = 0;
    auto outlet = open_sockets(port);
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
  if (what == OutletFor::again && has_chain(kMoved)) return open_elsewhere();
  // The rules could not be made when the namespace was; they are tried once more.
  if (what == OutletFor::again && !has_chain(kTurn)) what = OutletFor::fresh;
  uint16_t port = kUsualPort;
  auto outlet = open_sockets(port);
  if (what == OutletFor::again && !outlet && outlet.error().sys_errno == EADDRINUSE) return open_elsewhere();
  if (what == OutletFor::fresh && outlet) TRY(install_rules(port));
  return outlet;
}

}  // namespace osb::sys
