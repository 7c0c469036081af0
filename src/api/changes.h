#pragma once

// The small request bodies: metadata patches, renewals, client metrics.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/error.h"
#include "api/labels.h"
#include "base/clock.h"

namespace osb::api {

using MetadataPatch = std::map<std::string, std::optional<std::string>>;  // nothing: remove the key

ApiResult<MetadataPatch> decode_metadata_patch(std::string_view content_type, std::string_view body);
// The stored JSON object with the patch applied.
ApiResult<std::string> apply_patch(std::string_view stored_json, const MetadataPatch& patch);

ApiResult<WallTime> decode_renewal(std::string_view content_type, std::string_view body);

// What an SDK reports after a create; checked, then dropped until there is somewhere to count it.
ApiResult<> check_metrics_event(std::string_view content_type, std::string_view body);

}  // namespace osb::api
