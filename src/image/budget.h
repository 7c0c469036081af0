#pragma once

// Room on the disk: images that came from a registry can come again, so they go when nobody uses them and
// others need the room. What was imported from a file stays until somebody removes it.

#include <cstdint>
#include <string>
#include <vector>

#include "image/store.h"

namespace osb::image {

// Bytes of files in all layers, also in those that images have of sandboxes.
Result<uint64_t> bytes_in_store(const Store& store);

// Of them, those that shrink_to() could not free.
Result<uint64_t> bytes_that_stay(const Store& store);

struct Shrunk {
  std::vector<std::string> names;  // of images that are gone
  uint64_t bytes = 0;              // of files
};
// Removes pulled images that no sandbox uses, those that came first before others, until the store is not
// larger than `budget`. `keep` is the id of one that stays.
Result<Shrunk> shrink_to(Store& store, uint64_t budget, const std::string& keep);

}  // namespace osb::image
