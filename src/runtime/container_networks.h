#pragma once

// Networks for containers of another engine on this host, as native sandboxes have them: what leaves one goes
// through the egress process, by the sandbox's policy. The container was made without a network.

#include <optional>
#include <string>

#include "io/socket.h"
#include "runtime/spec.h"

namespace osb::runtime {

// Which container, in the words of its engine.
struct ContainerProcess {
  std::string container;
  int64_t pid = 0;  // of its first process
};

class ContainerNetworks {
 public:
  virtual ~ContainerNetworks() = default;

  // Before anything of the sandbox's owner runs in it. The policy holds after every restart, until the
  // process ends. `id` is what its owner calls it.
  virtual io::Task<Result<void>> open(std::string handle, ContainerProcess process, std::string id,
                                      NetworkPolicy policy) = 0;
  // After the container is gone; fine when it had none.
  virtual io::Task<Result<void>> close(std::string handle) = 0;
  // A connection on which the egress of the sandbox answers HTTP.
  virtual io::Task<Result<io::Socket>> connect(std::string handle) = 0;
  // The policy that is in force.
  virtual io::Task<Result<std::optional<NetworkPolicy>>> policy_of(std::string handle) = 0;
};

}  // namespace osb::runtime
