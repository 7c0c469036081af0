#pragma once

// An image as it is put together in the store: layer by layer from below, then named.

#include <functional>
#include <string>
#include <vector>

#include "image/layer_import.h"
#include "image/store.h"
#include "image/unpack.h"

namespace osb::image {

struct Imported {
  std::string id;
  std::vector<std::string> names;
  uint64_t bytes = 0, entries = 0;
  size_t layers = 0, layers_known = 0;
  uint64_t devices = 0, xattrs = 0;  // left out
};

struct ImageLimits {
  uint64_t max_bytes = kDefaultMaxBytes;  // of the whole image
  uint64_t max_entries = kDefaultMaxEntries;
};

// Borrows the store, whose only writer the caller is until finish() or collect(). As root, with one thread.
class ImageBuilder {
 public:
  ImageBuilder(Store& store, ImageLimits limits) : store_(store), limits_(limits) {}

  void set_config(const ImageConfig& config) { image_.config = config; }
  ImageConfig& config() { return image_.config; }
  // Where it comes from: the digest of a registry's manifest.
  void set_manifest(std::string digest) { image_.manifest = std::move(digest); }

  // The next layer; one that the store has is not unpacked again.
  Result<void> layer(const LayerSource& source, bool whiteouts, const WorkerWatch& watch);
  // Looks the user up in the finished files and makes the image known under the names.
  Result<Imported> finish(const std::vector<std::string>& names);

 private:
  void add(const Layer& layer);

  Store& store_;
  ImageLimits limits_;
  Image image_;
  Imported imported_;
};

}  // namespace osb::image
