#pragma once

// What a push sends: the layers of an image of this host, or of a snapshot and the image below it, and what
// the image says about its processes. As root; the store is not locked (layer_pack.h says why that is
// enough).

#include <string>
#include <vector>

#include "image/image.h"
#include "image/layer_pack.h"

namespace osb::image {

struct PushSource {
  std::vector<std::string> layers;  // directories, lowest first
  ImageConfig config;
  WallTime created = {};
  // Names of the images that have these layers: a registry may have them under the same ones.
  std::vector<std::string> names;
};

// By a name of the index, or an id. Code::not_found.
Result<PushSource> find_image_to_push(const std::string& state_dir, const std::string& name);
// Code::not_found; Code::unsupported for one of a sandbox whose files are not an image's.
Result<PushSource> find_snapshot_to_push(const std::string& state_dir, const std::string& snapshot);

// The two documents of an image in a registry. The same source gives the same bytes.
std::string config_document(const PushSource& source, const std::vector<PackedForm>& layers);
std::string manifest_document(std::string_view config, const std::vector<PackedForm>& layers);
inline constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";

}  // namespace osb::image
