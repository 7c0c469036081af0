#include "api/volume_json.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace osb::api {

// Names are letters, digits and hyphens: nothing of them has to be escaped.
std::string volumes_json(const std::vector<sandbox::NamedVolume>& volumes) {
  std::string out = "{\"items\":[";
  for (const sandbox::NamedVolume& one : volumes) {
    if (out.back() == '}') out.push_back(',');
    fmt::format_to(std::back_inserter(out),
                   R"({{"name":"{}","createdAt":"{}","deleteOnSandboxTermination":{},"sandboxes":{})",
                   one.name, format_api_time(one.created), one.ephemeral, one.users);
    if (one.size_bytes) fmt::format_to(std::back_inserter(out), R"(,"sizeBytes":{})", *one.size_bytes);
    out.push_back('}');
  }
  return out.append("]}");
}

}  // namespace osb::api
