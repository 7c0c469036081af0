#pragma once

// Posts denials by TLS for the egress process, which has no library for it (egress/deny_webhook.h): one after
// the other, as it asks, to the operator's address and nobody else. What is tried again, and when, is decided
// there; the name was looked up there, too.

#include <string>

#include "io/task.h"

namespace osb::server {

// Until cancelled; nothing is to be done for an address without TLS, which the egress process itself calls.
// `socket_path` is that process's; it is started by the first connection.
io::Task<> carry_denials(std::string socket_path, std::string url);

}  // namespace osb::server
