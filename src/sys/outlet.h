#pragma once

// The way out of a network namespace that has no device but its loopback: every connection and every lookup
// that would leave it comes to listening sockets inside, which belong to whoever holds them, somewhere else.
//
// lo has an address of global scope (without one connections have no source, and answers are lost) and is the
// default route. Packet rules on the output hook turn TCP and port 53 to the sockets and refuse the rest at
// once. Nothing depends on the rules for safety: who flushed them would send into a loop that leads nowhere.

#include <cstdint>
#include <vector>

#include "base/fd.h"

namespace osb::sys {

// In this order; those of IPv6 are missing where the kernel has none.
enum OutletSocket { kOutletTcp4, kOutletUdp4, kOutletTcp6, kOutletUdp6 };
using Outlet = std::vector<Fd>;
inline constexpr size_t kMostOutletSockets = 4;
// Beyond what the kernel chooses for programs that do not care.
inline constexpr uint16_t kOutletPort = 64053;

enum class OutletFor {
  fresh,  // a namespace in which there was none yet: the rules are made, too
  again,  // one whose sockets were closed. ENETUNREACH where there never was an address. If somebody
          // took their port meanwhile the rules are changed, for which the kernel makes the caller wait for
          // ten milliseconds and more
  again_or_not,  // the same without that: EADDRINUSE
  first,         // one that somebody else has made: the address and the routes are made, too.
                 // Code::permission_denied unless there is nothing in it but a loopback
};

// Both in the caller's own namespace. The address and the routes, once:
Result<void> route_through_loopback();
// Sockets that nobody else has, and rules that lead to them.
Result<Outlet> open_outlet_here(OutletFor what);
// The sockets alone, all of one number, so that rules need not tell them apart. 0: one that is free, which is
// told.
Result<Outlet> open_outlet_sockets(uint16_t& port);

}  // namespace osb::sys
