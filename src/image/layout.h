#pragma once

// What is in an image archive: the images, their configurations, and where their layers lie. Both common
// forms: `docker save` (manifest.json) and the OCI image layout (oci-layout, index.json, blobs).

#include <string>
#include <vector>

#include "base/machine.h"
#include "image/archive_files.h"
#include "image/image.h"
#include "image/layer_import.h"

namespace osb::image {

struct ArchivedImage {
  std::vector<std::string> names;
  ImageConfig config;
  std::vector<LayerSource> layers;  // lowest first; the ranges borrow from the files
};

// Images for another machine than this one are refused, or passed over where there are several to choose
// from. load_libraries() comes first.
Result<std::vector<ArchivedImage>> read_layout(ArchiveFiles& files);

}  // namespace osb::image
