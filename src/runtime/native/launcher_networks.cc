#include "runtime/native/launcher_networks.h"

#include "runtime/native/egress_client.h"

namespace osb::runtime {

using io::Task;

Task<Result<void>> LauncherNetworks::open(std::string handle, ContainerProcess process, std::string id,
                                          NetworkPolicy policy) {
  launcher::ContainerRequest request{handle, std::move(process.container), process.pid};
  CO_TRY(co_await launcher_.ask(request));
  // The launcher has opened it; nobody takes what arrives before the policy is kept.
  co_return co_await attach_egress(socket_, handle, std::move(id), std::move(policy));
}

Task<Result<void>> LauncherNetworks::close(std::string handle) {
  CO_TRY(co_await launcher_.ask(launcher::DestroyRequest{{std::move(handle)}}));
  co_return Result<void>();
}

Task<Result<io::Socket>> LauncherNetworks::connect(std::string handle) {
  co_return co_await connect_egress(socket_, std::move(handle));
}

Task<Result<std::optional<NetworkPolicy>>> LauncherNetworks::policy_of(std::string handle) {
  co_return co_await egress_policy(socket_, std::move(handle));
}

}  // namespace osb::runtime
