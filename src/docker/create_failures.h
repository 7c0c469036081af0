#pragma once

// How a create on an engine fails.

#include <algorithm>
#include <string_view>

#include "docker/container_config.h"
#include "runtime/runtime.h"

namespace osb::docker {

inline constexpr char kOtherFiles[] =
    "the Docker engine does not see the files of this host: it runs on another one, or in a container or a "
    "chroot of its own; set docker.remote = true for such an engine, or start it where the service's state "
    "directory is under the same path";

inline std::unexpected<runtime::CreateFailure> failed(runtime::CreateFailure::Kind kind, Error error) {
  return std::unexpected(runtime::CreateFailure{kind, std::move(error)});
}

inline bool is_away(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::timeout;
}

// Whether something was started is not known when the engine is away.
inline std::unexpected<runtime::CreateFailure> failed_step(Error error, std::string_view step) {
  bool away = is_away(error);
  using Kind = runtime::CreateFailure::Kind;
  return failed(away ? Kind::unavailable : Kind::step_failed, std::move(error).in(step));
}

// Whether an engine speaks of a directory in a volume, by its own path of it, which is nobody's business.
inline bool names_part_of_volume(std::string_view words, const std::vector<ContainerMount>& mounts) {
  return std::ranges::any_of(mounts, [&](const ContainerMount& mount) {
    if (!mount.volume.empty()) return words.find(mount.source) != words.npos;
    return !mount.sub_path.empty() && mount.kind == ContainerMount::Kind::volume &&
           words.find("/volumes/" + mount.source + "/") != words.npos;
  });
}

inline std::unexpected<runtime::CreateFailure> failed_part() {
  return failed(runtime::CreateFailure::Kind::sub_path_refused,
                {Code::invalid_argument, 0,
                 "volumes: the volume has no such directory (subPath), or a link is on the way"});
}

}  // namespace osb::docker
