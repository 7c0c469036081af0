#pragma once

// Whether anybody still waits for an answer.
//
// A client that closed its connection and one that only ended its direction of it (shutdown(SHUT_WR), as `nc
// -N` does after the request) look the same to a TCP socket: a FIN. The difference shows when something is
// sent: a closed socket answers with a reset. So after a FIN an interim answer (100 Continue, which every
// HTTP/1.1 client has to skip) is sent and the reset is waited for, shortly. Clients of HTTP/1.0 cannot be
// sent one, and count as gone.

#include "http/wire.h"

namespace osb::http {

// Not after the answer has started. One poll(2) for a client that has closed nothing.
Task<bool> client_gone(Wire& wire, bool http_1_1);

}  // namespace osb::http
