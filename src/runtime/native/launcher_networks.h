#pragma once

// Networks of containers, by the launcher and the egress process of this service.

#include "calls/launcher_client.h"
#include "runtime/container_networks.h"

namespace osb::runtime {

// Borrows the client.
class LauncherNetworks final : public ContainerNetworks {
 public:
  LauncherNetworks(calls::LauncherClient& launcher, std::string egress_socket)
      : launcher_(launcher), socket_(std::move(egress_socket)) {}

  io::Task<Result<void>> open(std::string handle, ContainerProcess process, std::string id,
                              NetworkPolicy policy) override;
  io::Task<Result<void>> close(std::string handle) override;
  io::Task<Result<io::Socket>> connect(std::string handle) override;
  io::Task<Result<std::optional<NetworkPolicy>>> policy_of(std::string handle) override;

 private:
  calls::LauncherClient& launcher_;
  std::string socket_;
};

}  // namespace osb::runtime
