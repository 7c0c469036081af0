#pragma once

// Addresses that are not of the public internet. A sandbox reaches them only when a rule names them, and some
// of them never: what they mean depends on who asks, and here it would be the host.

#include <string_view>

#include "sandbox/egress_target.h"

namespace osb::egress {

using sandbox::IpAddress;

enum class Reach {
  open,     // the public internet
  closed,   // private, link-local, metadata services: needs a rule for the address
  nowhere,  // loopback, unspecified, multicast, broadcast: of the egress process itself, never of a sandbox
};

struct Special {
  Reach reach = Reach::open;
  std::string_view what = {};  // for people: "a private address"
};

Special special(const IpAddress& address);

}  // namespace osb::egress
