#pragma once

// `osb egress serve`: the sidecar of a container or pod (egress/sidecar.h).

#include <string_view>

namespace osb::cli {

// Becomes the egress program that osb carries. Returns only when that fails.
int become_sidecar(std::string_view program);

}  // namespace osb::cli
