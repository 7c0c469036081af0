#pragma once

// A tar stream becomes a layer of an overlay: files below a directory, whiteouts in the kernel's form.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "image/layer_stream.h"
#include "image/tree_writer.h"

namespace osb::image {

inline constexpr uint64_t kDefaultMaxBytes = 32ull << 30;
inline constexpr uint64_t kDefaultMaxEntries = 1'000'000;

struct UnpackOptions {
  uint64_t max_bytes = kDefaultMaxBytes;      // of all files together, holes included
  uint64_t max_entries = kDefaultMaxEntries;  // of any kind
  // Layers remove things of the layers below by files named .wh.NAME; a plain root has none below.
  bool whiteouts = true;
  TreeWriter::Owners owners = TreeWriter::Owners::set;
  std::function<void(uint64_t bytes, uint64_t entries)> progress;
};

struct UnpackReport {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t devices = 0;  // left out
  uint64_t xattrs = 0;   // left out: kinds that images do not carry
  // Directories that hide what the layers below have. Marking them takes more rights than unpacking has.
  std::vector<std::string> opaque;
};

// How many bytes of tar a layer within these limits can have at most.
uint64_t max_stream_bytes(const UnpackOptions& options);

// Reads to the end of the source. Errors name the entry. load_libraries() comes first.
Result<UnpackReport> unpack(ByteSource& source, int directory, const UnpackOptions& options);

}  // namespace osb::image
