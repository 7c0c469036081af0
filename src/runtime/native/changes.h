#pragma once

// What the launcher says of a sandbox's changes (launcher/diff.h), read.

#include <string_view>
#include <vector>

#include "base/error.h"
#include "sandbox/snapshot.h"

namespace osb::runtime {

// The launcher's error when that is its last line. Code::corrupt for anything else, a text that breaks off
// included.
Result<std::vector<sandbox::FileChange>> parse_changes(std::string_view text);

}  // namespace osb::runtime
