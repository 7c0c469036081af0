#pragma once

// The PATH of programs whose environment has none.

#include <string_view>

namespace osb {

inline constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace osb
