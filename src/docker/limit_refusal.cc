#include "docker/limit_refusal.h"

namespace osb::docker {

std::optional<Error> limit_refusal(const sandbox::Limits& limits, const Error& said) {
  const std::string& words = said.message;
  auto says = [&](std::string_view part) { return words.find(part) != words.npos; };
  auto refusal = [](std::string text) { return Error{Code::unsupported, 0, std::move(text)}; };
  if (limits.gpus && (says("device driver") || says("gpu") || says("nvidia")))
    return refusal("resourceLimits.gpu: the Docker engine has no GPUs for containers (" + words +
                   "); install the GPU maker's container toolkit beside it, or leave "
                   "resourceLimits.gpu out of the request");
  if (limits.disk_bytes && (says("storage-opt") || says("torage opt") || says("quota")))
    return refusal("resourceLimits.disk: the storage driver of the Docker engine cannot limit a container (" +
                   words +
                   "); btrfs and overlay2 on xfs with the mount option pquota can, or leave "
                   "resourceLimits.disk out of the request");
  // Number 6 is of processes, which Podman sets whenever it sets any.
  if (limits.open_files && says("rlimit") && !says("rlimit type 6"))
    return refusal("resourceLimits.nofile: more than the Docker engine's host has (" + words + ")");
  return std::nullopt;
}

Error no_gpus_by_podman() {
  return {Code::unsupported, 0,
          "resourceLimits.gpu: there are no GPUs through Podman's API of Docker, which leaves such a request "
          "out; "
          "leave resourceLimits.gpu out of the request, or use Docker's own engine"};
}

}  // namespace osb::docker
