#include "sandbox/egress_target.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/strings.h"

namespace osb::sandbox {
namespace {

constexpr size_t kMostName = 253;
constexpr size_t kMostLabel = 63;
constexpr size_t kMostShown = 80;

std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, kMostShown)) out.push_back(c >= ' ' && c < 0x7f ? c : '?');
  return text.size() > kMostShown ? out + "..." : out;
}

bool is_name_byte(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

Result<IpPrefix> parse_prefix(std::string_view text, size_t slash) {
  auto wrong = [&] {
    return fail(Code::invalid_argument,
                "\"" + shown(text) + "\" is no range of addresses; write one like 10.0.0.0/8");
  };
  auto address = parse_ip(text.substr(0, slash));
  auto bits = parse_number<uint8_t>(text.substr(slash + 1));
  if (!address || !bits || *bits > address->size() * 8) return wrong();
  IpPrefix prefix{*address, *bits};
  for (size_t i = 0; i < address->size() * 8; ++i) {
    if (i >= *bits) prefix.address.bytes[i / 8] &= static_cast<uint8_t>(~(0x80 >> (i % 8)));
  }
  return prefix;
}

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
  std::string terminated(text);
  if (terminated.size() != text.size() || terminated.find('\0') != terminated.npos) return std::nullopt;
  IpAddress address;
  if (::inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1) return address;
  address.family = IpAddress::Family::v6;
  if (::inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) return plain(address);
  return std::nullopt;
}

IpAddress plain(IpAddress address) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (address.family == IpAddress::Family::v4 || !std::equal(kMapped, kMapped + 12, address.bytes.begin()))
    return address;
  IpAddress v4;
  std::copy_n(address.bytes.begin() + 12, 4, v4.bytes.begin());
  return v4;
}

std::string to_string(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.family == IpAddress::Family::v4 ? AF_INET : AF_INET6, address.bytes.data(), text,
              sizeof text);
  return text;
}

bool IpPrefix::contains(const IpAddress& other) const {
  if (other.family != address.family) return false;
  size_t whole = bits / 8;
  if (!std::equal(address.bytes.begin(), address.bytes.begin() + static_cast<ptrdiff_t>(whole),
                  other.bytes.begin()))
    return false;
  if (bits % 8 == 0) return true;
  auto mask = static_cast<uint8_t>(0xff << (8 - bits % 8));
  return ((address.bytes[whole] ^ other.bytes[whole]) & mask) == 0;
}

std::optional<std::string> normal_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > kMostName) return std::nullopt;
  std::string name = to_lower(text);
  size_t label = 0;
  for (char c : name) {
    if (c == '.') {
      if (label == 0) return std::nullopt;
      label = 0;
    } else if (!is_name_byte(c) || ++label > kMostLabel) {
      return std::nullopt;
    }
  }
  if (label == 0) return std::nullopt;
  return name;
}

Result<EgressTarget> parse_target(std::string_view given) {
  std::string text(trim(given));
  if (text.empty()) return fail(Code::invalid_argument, "egress target cannot be empty");
  EgressTarget target;
  if (auto address = parse_ip(text)) {
    target.kind = EgressTarget::Kind::prefix;
    target.prefix = {*address, static_cast<uint8_t>(address->size() * 8)};
    return target;
  }
  if (size_t slash = text.find('/'); slash != text.npos && text.find("//") == text.npos) {
    target.kind = EgressTarget::Kind::prefix;
    target.prefix = TRY(parse_prefix(text, slash));
    return target;
  }
  std::string_view name = text;
  if (name.starts_with("*.")) {
    target.kind = EgressTarget::Kind::below;
    name.remove_prefix(2);
  }
  auto normal = normal_name(name);
  // "1.2.3" or "0x7f.1" would be an address to some programs and a name to others.
  bool numeric =
      normal && normal->find_last_of('.') != normal->npos
          ? (*normal)[normal->find_last_of('.') + 1] >= '0' && (*normal)[normal->find_last_of('.') + 1] <= '9'
          : normal && (*normal)[0] >= '0' && (*normal)[0] <= '9';
  if (!normal || numeric)
    return fail(Code::invalid_argument,
                "\"" + shown(text) +
                    "\" is no egress target; write a host name (example.com), all names below one "
                    "(*.example.com), an address or a range (10.0.0.0/8), without scheme, port or path");
  target.name = std::move(*normal);
  return target;
}

bool matches(const EgressTarget& target, std::string_view name) {
  if (target.kind == EgressTarget::Kind::name) return name == target.name;
  if (target.kind != EgressTarget::Kind::below || name.size() <= target.name.size()) return false;
  return name.ends_with(target.name) && name[name.size() - target.name.size() - 1] == '.';
}

bool matches(const EgressTarget& target, const IpAddress& address) {
  return target.kind == EgressTarget::Kind::prefix && target.prefix.contains(address);
}

}  // namespace osb::sandbox
