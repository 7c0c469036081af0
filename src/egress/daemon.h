#pragma once

// The egress process: one per service, beside the server and without its rights. The launcher starts it,
// again when it ends, and gives it the sockets inside sandboxes; the server tells it about sandboxes and
// passes on what clients ask of their policies.
//
// On the socket from the server every connection begins with a frame (base/frame.h) of JSON that says whose
// it is: {"attach":HANDLE,"id":ID,"policy":{...}} is answered with a frame and ends; after {"api":HANDLE} the
// connection speaks HTTP with the egress of that sandbox (policy_routes.h). {"metrics":true} is answered with
// a frame whose "metrics" is a text (metrics.h). After {"webhook":true} the server is asked to post by TLS
// (deny_webhook.h).

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "egress/host_network.h"
#include "egress/verdict.h"
#include "io/task.h"
#include "sandbox/webhook.h"

namespace osb::egress {

struct DaemonOptions {
  std::vector<NameServer> name_servers;  // none: the host's
  Overlay overlay;
  std::optional<sandbox::Webhook> deny_webhook;
  Fd listener, launcher, directory;  // as launcher/egress_process.h gives them
};

// Until SIGTERM or until the launcher is gone.
io::Task<Result<void>> run(DaemonOptions options);

}  // namespace osb::egress
