#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

// Sends one request and returns the kernel's acknowledgement as a system call would.
Answer netlink(int protocol, uint16_t type, const void* body, size_t size) {
  File socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (!socket.ok()) return Answer(-1);
  alignas(nlmsghdr) char buffer[4096] = {};
  auto* head = reinterpret_cast<nlmsghdr*>(buffer);
  head->nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(size));
  head->nlmsg_type = type;
  head->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  std::memcpy(NLMSG_DATA(head), body, size);
  if (::send(socket.fd(), buffer, head->nlmsg_len, 0) < 0) return Answer(-1);
  timeval wait = {2, 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  if (::recv(socket.fd(), buffer, sizeof buffer, 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))))
    return Answer(-1);
  const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(head))->error;
  return Answer(error == 0 ? 0 : -1, error, 0);
}

void run(Attempts& a, Args) {
  File socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(socket.fd(), SIOCGIFMTU, &request) == 0)  // written back as it is
    a.call("ioctl(2)", "SIOCSIFMTU of lo", ::ioctl(socket.fd(), SIOCSIFMTU, &request));
  if (::ioctl(socket.fd(), SIOCGIFFLAGS, &request) == 0)
    a.call("ioctl(2)", "SIOCSIFFLAGS of lo", ::ioctl(socket.fd(), SIOCSIFFLAGS, &request));
  // A mark would step around rules that exempt the egress process; foreign source addresses around those by
  // address.
  const int one = 1;
  a.call("setsockopt(2)", "SO_MARK", ::setsockopt(socket.fd(), SOL_SOCKET, SO_MARK, &one, sizeof one));
  a.call("setsockopt(2)", "IP_TRANSPARENT",
         ::setsockopt(socket.fd(), IPPROTO_IP, IP_TRANSPARENT, &one, sizeof one));
  a.call("setsockopt(2)", "SO_RCVBUFFORCE",
         ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &one, sizeof one));

  const ifinfomsg same = {AF_UNSPEC, 0, 0, 1, 0, 0};  // lo with nothing to change
  a.call("netlink", "RTM_NEWLINK", netlink(NETLINK_ROUTE, RTM_NEWLINK, &same, sizeof same));
  rtmsg route = {};
  route.rtm_family = AF_INET, route.rtm_dst_len = 32, route.rtm_table = RT_TABLE_MAIN;
  a.gate("netlink", "RTM_DELROUTE", netlink(NETLINK_ROUTE, RTM_DELROUTE, &route, sizeof route));
  const nfgenmsg family = {AF_INET, NFNETLINK_V0, 0};
  a.gate("netlink", "nf_tables",
         netlink(NETLINK_NETFILTER, (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETGEN, &family, sizeof family));
}

}  // namespace

extern const Probe probe_net_admin = {
    "net_admin", "change interfaces, routes, marks and packet filter rules of its own network namespace",
    nullptr, run};

}  // namespace osb::probe
