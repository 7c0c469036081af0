// Probes of the sandbox's network: a namespace of its own whose loopback works, and rules inside it.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netfilter_ipv4.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/fd.h"
#include "cli/machine_probe.h"
#include "sys/outlet.h"

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
  return "a loopback of its own";
}

// The way out of a sandbox, as a launcher makes it: a connection to somewhere far away arrives here.
Result<std::string> packet_rules(const Machine&) {
  TRY(enter_new_network());
  TRY(loopback_up());
  TRY(sys::route_through_loopback());
  sys::Outlet outlet = TRY(sys::open_outlet_here(sys::OutletFor::fresh));
  Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(443);
  ::inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
  if (!client.valid() || ::connect(client.get(), reinterpret_cast<sockaddr*>(&far), sizeof far) < 0)
    return fail_errno("connect through the rules");
  sockaddr_in meant{};
  socklen_t size = sizeof meant;
  Fd accepted(::accept4(outlet[sys::kOutletTcp4].get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted.valid() || ::getsockopt(accepted.get(), IPPROTO_IP, SO_ORIGINAL_DST, &meant, &size) < 0)
    return fail_errno("see where a connection was meant to go");
  if (meant.sin_addr.s_addr != far.sin_addr.s_addr)
    return fail(Code::internal, "it arrives under another address");
  return outlet.size() > 2 ? "connections and lookups are turned, by IPv4 and IPv6"
                           : "connections and lookups are turned, by IPv4";
}

// Of the host itself. A datagram socket that is connected sends nothing: there is a route, or there is none.
Result<std::string> way_out(const Machine&) {
  auto reaches = [](int family, const char* text) {
    sockaddr_storage far{};
    auto* v4 = reinterpret_cast<sockaddr_in*>(&far);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&far);
    far.ss_family = static_cast<sa_family_t>(family);
    (family == AF_INET ? v4->sin_port : v6->sin6_port) = htons(53);
    ::inet_pton(family, text, family == AF_INET ? static_cast<void*>(&v4->sin_addr) : &v6->sin6_addr);
    Fd socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return socket.valid() && ::connect(socket.get(), reinterpret_cast<sockaddr*>(&far), sizeof far) == 0;
  };
  bool v4 = reaches(AF_INET, "8.8.8.8"), v6 = reaches(AF_INET6, "2001:4860:4860::8888");
  if (!v4 && !v6) return fail(Code::unavailable, "this host has no route to the internet");
  std::string servers = read_file("/etc/resolv.conf").value_or("");
  if (("\n" + servers).find("\nnameserver") == std::string::npos)
    return fail(Code::unavailable, "a route, but no name server in /etc/resolv.conf");
  return fmt::format("a route by {}, and name servers", v4 && v6 ? "IPv4 and IPv6" : v4 ? "IPv4" : "IPv6");
}

constexpr Probe kProbes[] = {
    {"network namespaces", Need::required, network_namespace,
     "a sandbox would share the host's network: nothing starts",
     "sysctl user.max_net_namespaces=65536; run as root"},
    {"packet rules", Need::wanted, packet_rules,
     "what sandboxes send out cannot be led anywhere: they have no network",
     "modprobe -a nf_tables nft_chain_nat nft_redir nft_reject_inet nf_conntrack"},
    {"way out of the host", Need::note, way_out, "sandboxes reach nothing, because this host does not either",
     "give the host a default route and name servers; egress.name_servers of the configuration can name "
     "others"},
};

}  // namespace

std::span<const Probe> network_probes() { return kProbes; }

}  // namespace osb::cli
