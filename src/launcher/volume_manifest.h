#pragma once

// What a named volume is, as lines of text in a file that only root writes and reads:
//
//   created <microseconds since 1970>
//   size <bytes>                       of a file system of its own; without it the service's
//   ephemeral                          it goes with the last sandbox that uses it

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::launcher {

struct VolumeManifest {
  int64_t created = 0;
  std::optional<int64_t> size_bytes = {};
  bool ephemeral = false;
  bool operator==(const VolumeManifest&) const = default;
};

inline constexpr size_t kMaxVolumeManifest = 256;

std::string encode(const VolumeManifest& manifest);
Result<VolumeManifest> decode_volume_manifest(std::string_view text);

}  // namespace osb::launcher
