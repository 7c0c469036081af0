#pragma once

// Named volumes on the wire.

#include <string>
#include <vector>

#include "sandbox/volume.h"

namespace osb::api {

// {"items": [{"name": "a", "createdAt": "...", "deleteOnSandboxTermination": false, "sandboxes": 1,
// "sizeBytes": 1073741824}, ...]}; the last one where there is a size.
std::string volumes_json(const std::vector<sandbox::NamedVolume>& volumes);

}  // namespace osb::api
