#pragma once

// The rules of metadata: keys "name" or "prefix/name", short values, the alphabet of labels, and bounds on
// the whole.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox/failure.h"
#include "sandbox/sandbox.h"

namespace osb::sandbox {

inline constexpr size_t kMaxLabels = 256;
inline constexpr std::string_view kReservedPrefix = "opensandbox.io/";

Outcome<> check_label(std::string_view key, std::string_view value);
// Reserved keys, each pair, and the number of pairs.
Outcome<> check_metadata(const Metadata& metadata);

using MetadataPatch = std::map<std::string, std::optional<std::string>>;  // nothing: remove the key
Outcome<Metadata> apply_patch(Metadata metadata, const MetadataPatch& patch);

}  // namespace osb::sandbox
