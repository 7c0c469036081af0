// Policies of containers. Such a container is made without a network; before its entry process starts, the
// launcher opens the way that a native sandbox has, and the egress process holds it. Nothing of ours is
// inside to be attacked, and whatever is missing means that nothing leaves.

#include "docker/docker_sandbox.h"

namespace osb::docker {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(10), kSidecarDeadline = std::chrono::seconds(20);

constexpr char kSwitchedOff[] =
    "the container has a network policy, and this service has egress switched off; set [egress] enabled = "
    "true, and start the service again";

}  // namespace

Task<Created<void>> DockerRuntime::open_network(SandboxPtr sandbox, std::string id,
                                                runtime::NetworkPolicy policy) {
  using Kind = CreateFailure::Kind;
  Result<void> opened;
  Result<Container> container = Container();
  if (!sandbox->by_engine()) container = co_await engine_.inspect(sandbox->container);
  if (sandbox->by_engine())
    opened = co_await tell_sidecar(sandbox, std::move(policy));
  else if (!container)
    opened = std::unexpected(std::move(container.error()));
  else if (!container->running)
    opened = fail(Code::not_found, "the container does not run any more");
  else
    opened = co_await settings_.networks->open(sandbox->handle, {sandbox->container, container->pid},
                                               std::move(id), std::move(policy));
  if (opened) co_return Created<void>();
  Kind kind = Kind::step_failed;
  switch (opened.error().code) {
    case Code::unsupported:
      // The engine may be where processes have other numbers, or the kernel without packet rules.
      kind = Kind::unsupported;
      break;
    case Code::unavailable:
    case Code::timeout:
      kind = Kind::unavailable;
      break;
    default:
      break;
  }
  co_return std::unexpected(CreateFailure{kind, std::move(opened.error()).in("open the sandbox's network")});
}

Task<Result<io::Stream>> DockerRuntime::connect_egress(SandboxPtr sandbox) {
  if (sandbox->others_egress) co_return co_await connect_others_egress(sandbox);
  if (sandbox->has_policy && sandbox->by_engine())
    co_return co_await io::with_deadline(kSidecarDeadline, "the egress of the sandbox",
                                         connect_sidecar(sandbox->sidecar));
  if (!sandbox->has_policy)
    co_return fail(
        Code::unsupported,
        "the container was made without a network policy and has the engine's network; make a new one "
        "with networkPolicy to have it");
  if (!settings_.networks) co_return fail(Code::unavailable, kSwitchedOff);
  co_return CO_TRY(co_await io::with_deadline(kConnectDeadline, "the egress process",
                                              settings_.networks->connect(sandbox->handle)));
}

Task<Result<std::optional<runtime::NetworkPolicy>>> DockerRuntime::network_of(std::string handle) {
  // What is not known is not "none": a copy would have the whole of the engine's network.
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end())
    co_return fail(Code::unavailable, "this server does not hold the container yet, and not its policy");
  if (found->second->others_egress) co_return co_await others_policy(found->second);
  if (!found->second->has_policy) co_return std::optional<runtime::NetworkPolicy>();
  if (found->second->by_engine()) co_return co_await sidecars_policy(found->second);
  if (!settings_.networks) co_return fail(Code::unavailable, kSwitchedOff);
  co_return co_await settings_.networks->policy_of(std::move(handle));
}

}  // namespace osb::docker
