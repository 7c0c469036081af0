#pragma once

// Snapshots: what a sandbox has changed, kept to be mounted below others. They have ids of their own.

#include <string>
#include <vector>

#include "launcher/messages/body.h"
#include "launcher/messages/finding.h"
#include "launcher/records.h"
#include "launcher/snapshot_manifest.h"

namespace osb::launcher {

// Copies what the sandbox `id` has changed; it is frozen meanwhile, unless it was before. Code::cancelled
// when somebody wanted the sandbox to go on, or to end.
struct CaptureRequest {
  static constexpr std::string_view kName = "capture";
  static constexpr Verb kVerb = Verb::capture;
  using Answer = Done;
  std::string id;
  std::string snapshot;  // what it is to be called

  void write(ByteWriter& out) const {
    out.string(id);
    out.string(snapshot);
  }
  void read(ByteReader& in) {
    id = in.string(kMaxIdBytes);
    snapshot = in.string(kMaxIdBytes);
  }
};

struct KeepAnswer {
  static constexpr std::string_view kName = "the answer to keep";
  static constexpr size_t kDescriptors = 0;
  std::string image;  // digest of the imported image that lies below; "" for others
  uint64_t bytes = 0, entries = 0;
  std::vector<SnapshotLayer> layers;  // topmost first
  std::string record;                 // that of the sandbox

  void write(ByteWriter& out) const {
    out.string(image);
    out.number(bytes);
    out.number(entries);
    out.number(static_cast<uint32_t>(layers.size()));
    for (const SnapshotLayer& layer : layers) {
      out.string(layer.overlay);
      out.string(layer.digest);
    }
    out.string(record);
  }
  void read(ByteReader& in) {
    image = in.string();
    bytes = in.number<uint64_t>();
    entries = in.number<uint64_t>();
    auto count = in.number<uint32_t>();
    if (count > kMostSnapshotLayers) return in.fail();
    for (uint32_t i = 0; i < count && !in.failed(); ++i) {
      SnapshotLayer layer;
      layer.overlay = in.string();
      layer.digest = in.string();
      layers.push_back(std::move(layer));
    }
    record = in.string(kMaxRecord);
  }
};

// Brings a captured snapshot to the disk, for good; answered at once for one that is kept already.
// Code::not_found, Code::wrong_state while it is being captured.
struct KeepRequest : IdBody {
  static constexpr std::string_view kName = "keep";
  static constexpr Verb kVerb = Verb::keep;
  using Answer = KeepAnswer;
};

// The same for a copy that need not outlast this boot, since only sandboxes are made of it: nobody waits for
// the disk. It can be kept afterwards.
struct PlaceRequest : IdBody {
  static constexpr std::string_view kName = "place";
  static constexpr Verb kVerb = Verb::place;
  using Answer = KeepAnswer;
};

// Fine when there is none of that id. What sandboxes use of it stays as long as they do.
struct DropRequest : IdBody {
  static constexpr std::string_view kName = "drop";
  static constexpr Verb kVerb = Verb::drop;
  using Answer = Done;
};

// Those that were captured, kept or not.
struct SnapshotsRequest : ListRequest {
  static constexpr std::string_view kName = "snapshots";
  static constexpr Verb kVerb = Verb::snapshots;
};

// Descriptor: a pipe with what the sandbox has changed (diff.h); its end is the end of that.
struct DiffAnswer : Done {
  static constexpr std::string_view kName = "the answer to diff";
  static constexpr size_t kDescriptors = 1;
};

struct DiffRequest : IdBody {
  static constexpr std::string_view kName = "diff";
  static constexpr Verb kVerb = Verb::diff;
  using Answer = DiffAnswer;
};

}  // namespace osb::launcher
