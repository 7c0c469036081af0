#include "egress/special_addresses.h"

#include <algorithm>
#include <vector>

namespace osb::egress {
namespace {

using sandbox::IpPrefix;

struct Range {
  IpPrefix prefix;
  Special special;
};

Range range(std::string_view address, uint8_t bits, Reach reach, std::string_view what) {
  // Not by parse_ip(), which turns mapped addresses into plain ones.
  return {{*sandbox::parse_ip(address), bits}, {reach, what}};
}

// Of several that fit, the first counts.
const std::vector<Range>& ranges() {
  static const std::vector<Range> kRanges = {
      range("0.0.0.0", 8, Reach::nowhere, "an address of this host"),
      range("127.0.0.0", 8, Reach::nowhere, "a loopback address of the host"),
      range("224.0.0.0", 4, Reach::nowhere, "a multicast address"),
      range("255.255.255.255", 32, Reach::nowhere, "a broadcast address"),
      range("240.0.0.0", 4, Reach::closed, "a reserved address"),
      range("10.0.0.0", 8, Reach::closed, "a private address"),
      range("172.16.0.0", 12, Reach::closed, "a private address"),
      range("192.168.0.0", 16, Reach::closed, "a private address"),
      range("100.64.0.0", 10, Reach::closed, "an address of a carrier's or cloud's own network"),
      range("169.254.0.0", 16, Reach::closed,
            "a link-local address, where clouds keep their metadata services"),
      range("168.63.129.16", 32, Reach::closed, "the address of a cloud's metadata service"),
      range("192.0.0.0", 24, Reach::closed, "a reserved address"),
      range("198.18.0.0", 15, Reach::closed, "an address for tests of networks"),
      range("::1", 128, Reach::nowhere, "a loopback address of the host"),
      range("::", 128, Reach::nowhere, "an address of this host"),
      range("ff00::", 8, Reach::nowhere, "a multicast address"),
      // Their meaning depends on the device, which a relay cannot know.
      range("fe80::", 10, Reach::nowhere, "a link-local address"),
      range("::", 96, Reach::closed, "a reserved address"),
      range("fec0::", 10, Reach::closed, "a private address"),
      range("fc00::", 7, Reach::closed, "a private address"),
      range("64:ff9b:1::", 48, Reach::closed, "a translated private address"),
      range("2001::", 32, Reach::closed, "a tunnelled address"),
  };
  return kRanges;
}

// The IPv4 address that a translator or a tunnel would make of it.
std::optional<IpAddress> inner(const IpAddress& address) {
  static const IpPrefix kNat64{*sandbox::parse_ip("64:ff9b::"), 96}, k6to4{*sandbox::parse_ip("2002::"), 16};
  bool nat64 = kNat64.contains(address);
  if (!nat64 && !k6to4.contains(address)) return std::nullopt;
  IpAddress v4;
  std::copy_n(address.bytes.begin() + (nat64 ? 12 : 2), 4, v4.bytes.begin());
  return v4;
}

}  // namespace

Special special(const IpAddress& given) {
  IpAddress address = sandbox::plain(given);
  for (const Range& range : ranges()) {
    if (range.prefix.contains(address)) return range.special;
  }
  if (auto v4 = inner(address)) return special(*v4);
  return {};
}

}  // namespace osb::egress
