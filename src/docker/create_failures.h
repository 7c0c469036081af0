#pragma once

// How a create on an engine fails.

#include <string_view>

#include "runtime/runtime.h"

namespace osb::docker {

inline constexpr char kOtherFiles[] =
    "the Docker engine does not see the files of this host: it runs on another one, or in a container or a "
    "chroot of its own; set docker.remote = true for such an engine, or start it where the service's state "
    "directory is under the same path";

inline std::unexpected<runtime::CreateFailure> failed(runtime::CreateFailure::Kind kind, Error error) {
  return std::unexpected(runtime::CreateFailure{kind, std::move(error)});
}

// Whether something was started is not known when the engine is away.
inline std::unexpected<runtime::CreateFailure> failed_step(Error error, std::string_view step) {
  bool away = error.code == Code::unavailable || error.code == Code::timeout;
  using Kind = runtime::CreateFailure::Kind;
  return failed(away ? Kind::unavailable : Kind::step_failed, std::move(error).in(step));
}

}  // namespace osb::docker
