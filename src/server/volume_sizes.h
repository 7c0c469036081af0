#pragma once

// A named volume that is there keeps its size, whatever a request says. Whoever asked for another one is
// told.

#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "sandbox/volume.h"

namespace osb::server {

// The named volumes in a sandbox's record that were asked for with a size.
std::vector<sandbox::Volume> sized_volumes(const std::string& record);

// What of these has another size, a sentence each. Nothing when nobody knows.
io::Task<std::vector<std::string>> other_sizes(runtime::Runtime& runtime, std::string owner,
                                               std::vector<sandbox::Volume> asked);

}  // namespace osb::server
