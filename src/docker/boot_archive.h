#pragma once

// execd as an archive that an engine unpacks (tar, "ustar"): one file that everybody may execute.

#include <string>
#include <string_view>

namespace osb::docker {

std::string boot_archive(std::string_view execd);

}  // namespace osb::docker
