#pragma once

// What stands behind the name of an image, from its first document on: through an index, or indexes within
// indexes, to the manifest for this machine, and to its configuration.

#include <functional>
#include <string>
#include <string_view>

#include "image/manifest.h"

namespace osb::image {

struct Described {
  std::string digest;  // of the manifest
  Manifest manifest;
  ConfigDocument config;  // of as many layers
};

// Where documents are, by their digests. What they give has been checked against it.
struct Documents {
  std::function<Result<std::string>(const std::string& digest)> manifest, config;
};

// `text` is the first document. Where nothing says which of several is for this machine, they are looked at
// in their order. Code::unsupported when none of them is; Code::too_large when that takes too many.
Result<Described> describe(std::string digest, std::string_view text, std::string_view platform,
                           const Documents& documents);

}  // namespace osb::image
