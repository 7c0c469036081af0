#pragma once

// One layer into the store: a worker unpacks it, we check what it says and give it its name.

#include <functional>
#include <string>

#include "image/layer_stream.h"
#include "image/store.h"
#include "image/unpack.h"
#include "image/worker.h"

namespace osb::image {

struct LayerSource {
  ByteRange bytes;
  std::string diff_id;      // what the image says it decompresses to; "" when it says nothing
  std::string blob_digest;  // of the bytes as they are; likewise
};

struct Layer {
  std::string digest;
  uint64_t bytes = 0, entries = 0;
  uint64_t devices = 0, xattrs = 0;  // left out
  bool hides_all_below = false;
};

// `options.progress` and `options.owners` are not used. The staged files are gone again after a failure.
Result<Layer> import_layer(Store& store, const LayerSource& source, const UnpackOptions& options,
                           const WorkerWatch& watch);

// What was recorded about a layer of the store.
Result<Layer> known_layer(const Store& store, const std::string& digest);
// Likewise, of one that lies elsewhere.
Result<Layer> layer_at(const std::string& path, const std::string& digest);

}  // namespace osb::image
