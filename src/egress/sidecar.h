#pragma once

// The egress process as a sidecar: it shares the network namespace of one container or pod that somebody else
// made, leads what leaves it to itself by packet rules of its own (sys/pod_outlet.h), and serves the policy
// at port 18080. It takes its settings from the environment (sidecar_settings.h), and the operator's lists
// from /var/egress/rules/deny.always and allow.always, which are looked at again every few seconds.
//
// Without it the network is closed, from its first moment on: the rules come before the settings are read,
// and nothing ever takes them away.

#include <string>
#include <vector>

#include "egress/sidecar_settings.h"
#include "io/task.h"
#include "sys/pod_outlet.h"

namespace osb::egress {

struct Gate {
  sys::PacketBadge badge;
  sys::Outlet outlet;
};

// Refuses where no variable says that this network is meant: it would take the host's away.
Result<Gate> close_the_network(const std::vector<std::string>& environment);

// Until SIGTERM. `carrier`: where who speaks TLS for the webhook is heard of; may be none.
io::Task<Result<void>> run_sidecar(Gate gate, SidecarSettings settings, Fd carrier);

}  // namespace osb::egress
