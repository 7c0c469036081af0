#pragma once

// Sockets of the egress process itself to the outside: connections that it relays, questions to name servers,
// the webhook.

#include "egress/host_network.h"
#include "io/socket.h"

namespace osb::egress {

io::Task<Result<io::Socket>> connect_tcp(const HostNetwork& host, IpAddress address, uint16_t port);
// Not blocking, close-on-exec; nothing is sent.
Result<Fd> connect_udp(const HostNetwork& host, const IpAddress& address, uint16_t port);

}  // namespace osb::egress
