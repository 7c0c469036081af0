#pragma once

// Limits that some engines hold and others refuse, when a container is made or started: they have no codes
// for that, only words.

#include <optional>

#include "base/error.h"
#include "sandbox/limits.h"

namespace osb::docker {

// What to tell whoever asked for these limits; nothing when the engine speaks of something else.
std::optional<Error> limit_refusal(const sandbox::Limits& limits, const Error& said);
// Podman says nothing and gives none.
Error no_gpus_by_podman();

}  // namespace osb::docker
