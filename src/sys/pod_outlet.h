#pragma once

// The way out of a network namespace that has devices of its own: a container's or a pod's, policed from
// within by a process that shares it. Connections and lookups come to listening sockets like those of an
// outlet (outlet.h); what the process itself sends carries a badge, and passes. Answers to connections that
// came from outside pass, too. The rest is refused.
//
// The rules stay when the process ends, and lead to nobody then: nothing leaves.

#include "sys/outlet.h"
#include "sys/packet_rules.h"

namespace osb::sys {

Result<PacketBadge> random_badge();
// For a socket that is not connected yet.
Result<void> wear_badge(int socket, const PacketBadge& badge);

// In the caller's own namespace, in place of whatever rules of ours are there. The usual port, or another one
// if somebody has that.
Result<Outlet> open_pod_outlet(const PacketBadge& badge);

}  // namespace osb::sys
