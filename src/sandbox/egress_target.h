#pragma once

// What a rule of a network policy names: an address, a range of addresses, a host name, or all names below
// one. Decided in this order. What is none of them is refused, because it would never match and its author
// would believe that it does.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::sandbox {

// IPv4 addresses have a zero in front of nothing: family says which, and four bytes count.
struct IpAddress {
  enum class Family : uint8_t { v4, v6 } family = Family::v4;
  std::array<uint8_t, 16> bytes{};

  size_t size() const { return family == Family::v4 ? 4 : 16; }
  auto operator<=>(const IpAddress&) const = default;
};

// An IPv4 address inside IPv6 (::ffff:1.2.3.4) is the IPv4 address: the kernel treats it so.
std::optional<IpAddress> parse_ip(std::string_view text);
IpAddress plain(IpAddress address);
std::string to_string(const IpAddress& address);

struct IpPrefix {
  IpAddress address;
  uint8_t bits = 0;
  bool contains(const IpAddress& other) const;
  auto operator<=>(const IpPrefix&) const = default;
};

struct EgressTarget {
  enum class Kind { prefix, name, below } kind = Kind::name;
  IpPrefix prefix = {};   // a single address has all its bits
  std::string name = {};  // lower case, without the dot at the end and without "*."
};

// Code::invalid_argument with a sentence that says what is wrong and what would be right.
Result<EgressTarget> parse_target(std::string_view text);

// A host name as it comes from a lookup, a TLS or an HTTP client: lower case, without the dot at the end;
// nothing when it cannot be one (empty labels, other bytes than letters, digits, '-' and '_').
std::optional<std::string> normal_name(std::string_view text);

bool matches(const EgressTarget& target, std::string_view normal_name);
bool matches(const EgressTarget& target, const IpAddress& address);

}  // namespace osb::sandbox
