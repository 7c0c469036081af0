#pragma once

// What a snapshot is made of: the image below, and layers with what sandboxes changed, for each of the
// overlays that a sandbox has. As lines of text, in files that only root writes and reads:
//
//   boot <id>               it was made in: before it is kept, only this boot knows that its files are whole
//   image <digest>          of an imported image; without it the image has no digest
//   size <bytes> <entries>  of what this snapshot added
//   new <overlay> <digest>  of a staged one: a layer that lies beside this file and has no place yet
//   layer <overlay> <digest>
//
// Layers of one overlay come topmost first.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::launcher {

struct SnapshotLayer {
  std::string overlay, digest;
  bool is_new = false;
  bool operator==(const SnapshotLayer&) const = default;
};

struct Manifest {
  std::string boot = {};
  std::string image = {};
  uint64_t bytes = 0, entries = 0;
  std::vector<SnapshotLayer> layers = {};
};

// How long a snapshot has to last. For this boot nothing has to be on the disk.
enum class Lasting { this_boot, for_good };

struct FoundSnapshot {
  Manifest manifest;
  std::string record;  // that of the sandbox
};

// Of all overlays together. Each is a descriptor and a mount of every sandbox that is made from it.
inline constexpr size_t kMostSnapshotLayers = 128;
inline constexpr size_t kMaxManifest = 32 * 1024;

std::string encode(const Manifest& manifest);
Result<Manifest> decode_manifest(std::string_view text);

// The layers of snapshots among those of a plan's overlays, as lines of a manifest: what a sandbox's
// directory says that the sandbox uses. "" for none.
struct Plan;
std::string used_layers(const Plan& plan, const std::string& state_dir);

}  // namespace osb::launcher
