#include "image/builder.h"

#include <algorithm>

#include "image/accounts.h"
#include "image/reference.h"

namespace osb::image {

Result<void> ImageBuilder::layer(const LayerSource& source, bool whiteouts, const WorkerWatch& watch) {
  if (!source.diff_id.empty() && store_.has_layer(source.diff_id)) {
    ++imported_.layers_known;
    add(TRY(known_layer(store_, source.diff_id)));
    return {};
  }
  UnpackOptions unpack;
  unpack.max_bytes = limits_.max_bytes - std::min(limits_.max_bytes, imported_.bytes);
  unpack.max_entries = limits_.max_entries - std::min(limits_.max_entries, imported_.entries);
  unpack.whiteouts = whiteouts;
  add(TRY(import_layer(store_, source, unpack, watch)));
  return {};
}

Result<Imported> ImageBuilder::finish(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.empty()) return fail(Code::invalid_argument, "it says no name\n  remedy: give one with --name");
    TRY(in_context("name " + name, check_name(name)));
  }
  std::vector<std::string> layers;
  for (const std::string& digest : image_.layers) layers.push_back(store_.layer_path(digest));
  auto passwd = TRY(read_from_layers(layers, "etc/passwd")),
       group = TRY(read_from_layers(layers, "etc/group"));
  TRY(resolve_user(image_.config, passwd, group));
  image_.imported = wall_now();
  image_.bytes = imported_.bytes;
  image_.entries = imported_.entries;
  image_.id = imported_.id = compute_id(image_);
  imported_.names = names;
  TRY(store_.add(std::move(image_), names));
  return std::move(imported_);
}

void ImageBuilder::add(const Layer& layer) {
  if (layer.hides_all_below) image_.layers.clear();
  // A layer that comes again (empty ones often do) hides itself further down, and an overlay takes none
  // twice.
  std::erase(image_.layers, layer.digest);
  image_.layers.push_back(layer.digest);
  imported_.bytes += layer.bytes;
  imported_.entries += layer.entries;
  imported_.devices += layer.devices;
  imported_.xattrs += layer.xattrs;
  ++imported_.layers;
}

}  // namespace osb::image
