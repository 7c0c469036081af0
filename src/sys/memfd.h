#pragma once

// Executables in sealed memory: nobody, not even root inside a sandbox that runs one, can change a byte of
// them.

#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::sys {

Result<Fd> sealed_executable(const std::string& name, std::string_view bytes);

}  // namespace osb::sys
