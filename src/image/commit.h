#pragma once

// A snapshot becomes an image: its layers stay where they are and are pinned (store.h), the layers of the
// image below are shared, and what the image says about its processes is the image's below with changes.

#include <map>
#include <string>
#include <vector>

#include "image/import.h"
#include "image/store.h"

namespace osb::image {

struct CommitOrder {
  std::string snapshot;  // a complete one
  std::string base;      // of a snapshot over an image without a digest: `host`, or a configured directory
  std::string owner;     // of the snapshot; nobody else will see the image
  std::string name;
  ConfigChanges changes;
};

// What a snapshot's manifest says (launcher/snapshot_manifest.h).
struct SnapshotParts {
  std::string image;                 // digest; "" for an image without one
  std::vector<SandboxLayer> layers;  // topmost first
};
bool is_snapshot_id(std::string_view id);
Result<SnapshotParts> parse_snapshot(std::string_view manifest);

// Whether the owner may give an image this name: it is nobody's, or of an image that the same owner made of a
// sandbox. Code::invalid_argument, Code::already_exists.
Result<void> check_taken(const Index& index, const std::string& name, const std::string& owner);

// The image's id. `directories`: the root of each configured base. Code::not_found: there is no such
// snapshot, or its image is gone. As root.
Result<std::string> commit(Store& store, const CommitOrder& order,
                           const std::map<std::string, std::string>& directories);

}  // namespace osb::image
