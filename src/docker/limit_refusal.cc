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
  if (limits.open_files && says("rlimit"))
    return refusal("resourceLimits.nofile: more than the Docker engine's host has (" + words + ")");
  return std::nullopt;
}

}  // namespace osb::docker
