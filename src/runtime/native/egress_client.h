#pragma once

// The server's side of the egress process's socket (egress/daemon.h): a connection per call.

#include <string>

#include "io/socket.h"
#include "runtime/spec.h"

namespace osb::runtime {

// The sandbox reaches what the policy allows, from now on and after every restart of the egress process,
// until it ends. Code::unsupported when this host cannot give a sandbox a way out.
io::Task<Result<void>> attach_egress(std::string socket_path, std::string handle, std::string id,
                                     NetworkPolicy policy);

// The policy that is in force; nothing of a sandbox that has no way out.
io::Task<Result<std::optional<NetworkPolicy>>> egress_policy(std::string socket_path, std::string handle);

// What the egress process has counted since it was started, in the text format of Prometheus.
io::Task<Result<std::string>> egress_metrics(std::string socket_path);

// A connection on which the egress of the sandbox answers HTTP.
io::Task<Result<io::Socket>> connect_egress(std::string socket_path, std::string handle);

}  // namespace osb::runtime
