#pragma once

// The rules of metadata: keys "name" or "prefix/name", short values, the alphabet of labels, and bounds on
// the whole.

#include <map>
#include <string>
#include <string_view>

#include "api/error.h"

namespace osb::api {

using Metadata = std::map<std::string, std::string>;

inline constexpr size_t kMaxLabels = 256;
inline constexpr std::string_view kReservedPrefix = "opensandbox.io/";

ApiResult<> check_label(std::string_view key, std::string_view value);
// Reserved keys, each pair, and the number of pairs.
ApiResult<> check_metadata(const Metadata& metadata);

}  // namespace osb::api
