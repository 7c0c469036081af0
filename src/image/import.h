#pragma once

// What `osb images import` does: a directory or an archive becomes an image of this host.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "image/builder.h"

namespace osb::image {

// What the operator says about an image, over what the image says itself.
struct ConfigChanges {
  std::vector<std::pair<std::string, std::string>> env;  // added, or in place of those of the same name
  std::optional<std::string> user, workdir;
  std::optional<std::vector<std::string>> entrypoint;
  std::map<std::string, std::string> labels;
  std::optional<std::vector<std::string>> cmd = {};
  std::vector<std::string> ports = {};  // added
};
void apply(const ConfigChanges& changes, ImageConfig& config);

struct ImportOptions {
  std::string source;              // path of a directory or an archive; "-" is standard input
  std::vector<std::string> names;  // none: those that the archive has, else one made from the path
  ImageConfig config;              // for a source that has none of its own
  ConfigChanges changes;
  uint64_t max_bytes = kDefaultMaxBytes;  // of the whole image
  uint64_t max_entries = kDefaultMaxEntries;
};

struct ImportWatch {
  // Layer `number` of `count`; so many bytes and entries of it are unpacked.
  std::function<void(size_t number, size_t count, uint64_t bytes, uint64_t entries)> progress;
  int cancel_fd = -1;  // readable: give up, leaving nothing behind
};

// One for each image in the source. As root, with one thread. load_libraries() comes first.
Result<std::vector<Imported>> import_images(Store& store, const ImportOptions& options,
                                            const ImportWatch& watch);

}  // namespace osb::image
