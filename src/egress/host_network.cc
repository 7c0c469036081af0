#include "egress/host_network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/fd.h"
#include "base/strings.h"
#include "egress/special_addresses.h"

namespace osb::egress {
namespace {

constexpr std::chrono::seconds kGoodFor(5);
constexpr size_t kMostServers = 10;

std::optional<IpAddress> address_of(const sockaddr* from) {
  IpAddress address;
  if (from == nullptr) return std::nullopt;
  if (from->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(from);
    std::copy_n(reinterpret_cast<const uint8_t*>(&in->sin_addr), 4, address.bytes.begin());
    return address;
  }
  if (from->sa_family != AF_INET6) return std::nullopt;
  address.family = IpAddress::Family::v6;
  const auto* in = reinterpret_cast<const sockaddr_in6*>(from);
  std::copy_n(reinterpret_cast<const uint8_t*>(&in->sin6_addr), 16, address.bytes.begin());
  return address;
}

// A connected datagram socket sends nothing; it has a route or has none.
bool has_route_by_ipv6() {
  Fd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 far{};
  far.sin6_family = AF_INET6;
  far.sin6_port = htons(53);
  ::inet_pton(AF_INET6, "2001:4860:4860::8888", &far.sin6_addr);
  return socket.valid() && ::connect(socket.get(), reinterpret_cast<sockaddr*>(&far), sizeof far) == 0;
}

}  // namespace

Result<NameServer> parse_name_server(std::string_view given) {
  std::string_view text = trim(given), host = text, port;
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    host = end == text.npos ? "" : text.substr(1, end - 1);
    port = end == text.npos ? "" : text.substr(end + 1);
  } else if (!sandbox::parse_ip(text)) {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  auto address = sandbox::parse_ip(host);
  auto number = port.starts_with(':') ? parse_number<uint16_t>(port.substr(1)) : std::nullopt;
  if (!address || (!port.empty() && number.value_or(0) == 0))
    return fail(Code::invalid_argument,
                "a name server is an address, with or without a port: 1.1.1.1, [2001:db8::1]:53");
  return NameServer{*address, number.value_or(53)};
}

std::vector<NameServer> name_servers_of(std::string_view text) {
  std::vector<NameServer> far, near;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    constexpr std::string_view kWord = "nameserver";
    if (!line.starts_with(kWord)) continue;
    line.remove_prefix(kWord.size());
    if (line.empty() || (line[0] != ' ' && line[0] != '\t')) continue;
    auto address = sandbox::parse_ip(trim(line));
    if (!address) continue;
    bool loopback = special(*address).reach == Reach::nowhere;
    (loopback ? near : far).push_back({*address});
  }
  far.insert(far.end(), near.begin(), near.end());
  if (far.size() > kMostServers) far.resize(kMostServers);
  return far;
}

void HostNetwork::look_again() {
  auto now = Clock::now();
  if (looked_ != Clock::time_point() && now - looked_ < kGoodFor) return;
  looked_ = now;
  found_ = configured_.empty() ? name_servers_of(read_file(path_).value_or("")) : configured_;
  ipv6_ = has_route_by_ipv6();
  struct ifaddrs* all = nullptr;
  if (::getifaddrs(&all) < 0) return;  // what was known stays
  own_.clear();
  for (const auto* one = all; one != nullptr; one = one->ifa_next) {
    if (auto address = address_of(one->ifa_addr)) own_.push_back(*address);
  }
  ::freeifaddrs(all);
}

const std::vector<NameServer>& HostNetwork::name_servers() {
  look_again();
  return found_;
}

bool HostNetwork::is_own(const IpAddress& address) {
  look_again();
  return std::ranges::find(own_, address) != own_.end();
}

bool HostNetwork::has_ipv6() {
  look_again();
  return ipv6_;
}

}  // namespace osb::egress
