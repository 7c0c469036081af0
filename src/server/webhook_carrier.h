#pragma once

// Posts denials by TLS for the egress process, which has no library for it (egress/deny_webhook.h): one after
// the other, as it asks, on connections that it has made. What is tried again, and when, is decided there.

#include <string>

#include "base/fd.h"
#include "io/task.h"
#include "sandbox/webhook.h"

namespace osb::server {

// Until cancelled; nothing is to be done for an address without TLS, which the egress process itself calls.
// `socket_path` is that process's; it is started by the first connection.
io::Task<> carry_denials(std::string socket_path, std::string url);

// For a sidecar, which has no server beside it (egress/sidecar.h): it gets the other ends of connections by
// `control`, one after the other. Returns when it has ended.
io::Task<Result<void>> carry_sidecars_denials(Fd control, sandbox::Webhook hook);

}  // namespace osb::server
