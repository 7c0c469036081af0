#pragma once

// Executables that this one carries. Empty in builds that cannot make static ones (sanitizers).

#include <string_view>

namespace osb::cli {

struct Embedded {
  std::string_view launcher, execd, probe;
};

}  // namespace osb::cli
