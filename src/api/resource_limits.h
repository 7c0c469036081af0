#pragma once

// The grammar of resourceLimits. A limit that cannot be read or enforced is an error, never "no limit".

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/error.h"
#include "sandbox/limits.h"

namespace osb::api {

inline constexpr int64_t kMinCpuMillis = 10;
inline constexpr int64_t kMinMemoryBytes = 16 << 20;
inline constexpr int64_t kMinDiskBytes = 16 << 20;
inline constexpr int64_t kMinIoBytes = 64 << 10;
inline constexpr int64_t kMinOpenFiles = 64;
inline constexpr int64_t kMinPids = 16;  // execd, a shell and what they need

// "0.5", "2", "250m"; nothing when it is no positive finite number of cores. Rounded down to whole
// millicores.
std::optional<int64_t> parse_cpu(std::string_view text);
// Digits and a unit: none or b; k, kb, m, mb, g, gb, t, tb (powers of 1000); ki, mi, gi, ti (powers of 1024);
// any case.
std::optional<int64_t> parse_memory(std::string_view text);

ApiResult<sandbox::Limits> parse_limits(const std::map<std::string, std::string>& limits);

}  // namespace osb::api
