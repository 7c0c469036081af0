#pragma once

// What volumes a request may ask for: rules of values (400). Whether a directory is there, and whether a
// sandbox could write to it, only the host knows.

#include <string>
#include <vector>

#include "api/error.h"
#include "api/volumes.h"
#include "sandbox/create_request.h"

namespace osb::api {

inline constexpr size_t kMostVolumes = 32;

// `allowed`: storage.allowed_host_paths.
ApiResult<std::vector<sandbox::Volume>> check_volumes(const std::vector<Volume>& volumes,
                                                      const std::vector<std::string>& allowed);

}  // namespace osb::api
