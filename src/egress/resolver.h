#pragma once

// Asks name servers, one after the other, over UDP and, what does not fit, over TCP. Each question has a
// socket and an id of its own: whoever wants to answer in a name server's place has to guess both.

#include "egress/dns_message.h"
#include "egress/host_network.h"
#include "io/task.h"

namespace osb::egress {

// Code::unavailable: none has answered; the sentence says which were asked.
io::Task<Result<DnsAnswer>> resolve(HostNetwork& host, DnsQuestion question);

}  // namespace osb::egress
