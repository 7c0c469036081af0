#pragma once

// The small request bodies: metadata patches, renewals, client metrics.

#include <string_view>

#include "api/error.h"
#include "base/clock.h"
#include "sandbox/labels.h"

namespace osb::api {

ApiResult<sandbox::MetadataPatch> decode_metadata_patch(std::string_view content_type, std::string_view body);

ApiResult<WallTime> decode_renewal(std::string_view content_type, std::string_view body);

// What an SDK reports after a create; checked, then dropped until there is somewhere to count it.
ApiResult<> check_metrics_event(std::string_view content_type, std::string_view body);

}  // namespace osb::api
