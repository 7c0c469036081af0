#pragma once

// What an executable brings along: executables that it carries (empty in builds that cannot make static ones:
// sanitizers), and runtimes besides those of every server.

#include <string_view>
#include <vector>

#include "runtime/runtimes.h"

namespace osb::cli {

struct Embedded {
  std::string_view launcher, execd, egress, probe;
  std::vector<runtime::RuntimeFactory> runtimes = {};
};

}  // namespace osb::cli
