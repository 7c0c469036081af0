#pragma once

// The machine that this was built for.

#include <string_view>

namespace osb {

// The architecture of this build, as images and the API name it.
constexpr std::string_view host_architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "unknown";
#endif
}

}  // namespace osb
