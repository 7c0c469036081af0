#pragma once

// What the egress process has to know about the host it runs on: its name servers, its own addresses, whether
// it has a way out by IPv6. Each is looked at again after some seconds: hosts move.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/egress_target.h"
#include "sys/packet_rules.h"

namespace osb::egress {

using sandbox::IpAddress;

struct NameServer {
  IpAddress address;
  uint16_t port = 53;
};

// "1.1.1.1", "1.1.1.1:5353", "2001:db8::1", "[2001:db8::1]:53"; no names.
Result<NameServer> parse_name_server(std::string_view text);
// Of a text in the format of /etc/resolv.conf: those that are not loopback first; at most 10. Nothing else in
// it (search, options) is of interest: names are asked for as sandboxes wrote them.
std::vector<NameServer> name_servers_of(std::string_view resolv_conf);

// Belongs to one loop.
class HostNetwork {
 public:
  // `configured`: these and no others; empty: those of the host.
  explicit HostNetwork(std::vector<NameServer> configured, std::string resolv_conf = "/etc/resolv.conf")
      : configured_(std::move(configured)), path_(std::move(resolv_conf)) {}

  const std::vector<NameServer>& name_servers();
  bool is_own(const IpAddress& address);
  bool has_ipv6();

  // How long one name server has for an answer.
  std::chrono::milliseconds patience = std::chrono::milliseconds(1500);
  // What connections to the outside carry, where they share a network with those who are policed.
  std::optional<sys::PacketBadge> badge;

 private:
  using Clock = std::chrono::steady_clock;
  void look_again();

  std::vector<NameServer> configured_;
  std::string path_;
  std::vector<NameServer> found_;
  std::vector<IpAddress> own_;
  bool ipv6_ = false;
  Clock::time_point looked_{};
};

}  // namespace osb::egress
