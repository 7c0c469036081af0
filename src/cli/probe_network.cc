// Probes of the sandbox's network: a namespace of its own whose loopback works, and rules inside it.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "cli/machine_probe.h"

namespace osb::cli {
namespace {

Result<void> enter_new_network() {
  if (::unshare(CLONE_NEWNET) < 0) return fail_errno("new network namespace");
  return {};
}

Result<void> loopback_up() {
  Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.valid()) return fail_errno("socket");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(control.get(), SIOCGIFFLAGS, &request) < 0) return fail_errno("find lo");
  request.ifr_flags |= IFF_UP;
  if (::ioctl(control.get(), SIOCSIFFLAGS, &request) < 0) return fail_errno("bring lo up");
  return {};
}

Result<std::string> network_namespace(const Machine&) {
  TRY(enter_new_network());
  TRY(loopback_up());
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid() || !client.valid()) return fail_errno("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(80);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, sizeof address) < 0 || ::listen(listener.get(), 1) < 0)
    return fail_errno("listen");
  if (::connect(client.get(), generic, sizeof address) < 0) return fail_errno("connect over lo");
  return "own loopback, no way out";
}

// A batch of nf_tables requests, built by hand: netlink messages with attributes, nested ones included.
class Batch {
 public:
  Batch() { plain(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, htons(NFNL_SUBSYS_NFTABLES)); }

  void request(int type) {
    plain(static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_CREATE | NLM_F_ACK, NFPROTO_INET, 0);
    ++acks_;
  }
  void text(uint16_t type, std::string_view value) { attribute(type, std::string(value) + '\0'); }
  void number(uint16_t type, uint32_t value) {
    uint32_t big = htonl(value);
    attribute(type, {reinterpret_cast<const char*>(&big), sizeof big});
  }
  void open(uint16_t type) {
    nested_ = bytes_.size();
    attribute(type | NLA_F_NESTED, {});
  }
  void close() {
    auto length = static_cast<uint16_t>(bytes_.size() - nested_);
    std::memcpy(bytes_.data() + nested_, &length, sizeof length);
  }

  Result<void> send() {
    plain(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, htons(NFNL_SUBSYS_NFTABLES));
    Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    if (!socket.valid()) return fail_errno("netfilter socket");
    if (::send(socket.get(), bytes_.data(), bytes_.size(), 0) < 0) return fail_errno("send");
    for (int left = acks_; left > 0;) {
      alignas(nlmsghdr) char buffer[8192];
      ssize_t n = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (n < 0) return fail_errno("receive");
      auto size = static_cast<unsigned>(n);
      for (auto* m = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(m, size);
           m = NLMSG_NEXT(m, size), --left) {
        int error = m->nlmsg_type == NLMSG_ERROR ? static_cast<nlmsgerr*>(NLMSG_DATA(m))->error : -EPROTO;
        if (error) return fail_errno("nf_tables request", -error);
      }
    }
    return {};
  }

 private:
  void plain(uint16_t type, uint16_t flags, uint8_t family, uint16_t resource) {
    message_ = bytes_.size();
    nlmsghdr head{NLMSG_LENGTH(sizeof(nfgenmsg)), type, static_cast<uint16_t>(NLM_F_REQUEST | flags),
                  ++sequence_, 0};
    nfgenmsg body{family, NFNETLINK_V0, resource};
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
    bytes_.append(reinterpret_cast<const char*>(&body), sizeof body);
  }
  void attribute(uint16_t type, std::string_view value) {
    nlattr head{static_cast<uint16_t>(sizeof(nlattr) + value.size()), type};
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head).append(value);
    bytes_.resize(NLA_ALIGN(bytes_.size()));
    auto length = static_cast<uint32_t>(bytes_.size() - message_);
    std::memcpy(bytes_.data() + message_, &length, sizeof length);
  }

  std::string bytes_;
  size_t message_ = 0, nested_ = 0;
  uint32_t sequence_ = 0;
  int acks_ = 0;
};

Result<std::string> nf_tables(const Machine&) {
  TRY(enter_new_network());
  Batch batch;
  batch.request(NFT_MSG_NEWTABLE);
  batch.text(NFTA_TABLE_NAME, "osb");
  batch.request(NFT_MSG_NEWCHAIN);
  batch.text(NFTA_CHAIN_TABLE, "osb");
  batch.text(NFTA_CHAIN_NAME, "out");
  batch.open(NFTA_CHAIN_HOOK);
  batch.number(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
  batch.number(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(-100));
  batch.close();
  batch.text(NFTA_CHAIN_TYPE, "nat");
  TRY(batch.send());
  return "a nat chain on outgoing traffic";
}

constexpr Probe kProbes[] = {
    {"network namespaces", Need::required, network_namespace,
     "a sandbox would share the host's network: nothing starts",
     "sysctl user.max_net_namespaces=65536; run as root"},
    {"nf_tables", Need::wanted, nf_tables, "outgoing traffic cannot be filtered: sandboxes get none",
     "modprobe nf_tables nft_chain_nat"},
};

}  // namespace

std::span<const Probe> network_probes() { return kProbes; }

}  // namespace osb::cli
