#pragma once

// What a sandbox had changed at one moment, kept: others can be made from it. Plain values, as in sandbox.h.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace osb::sandbox {

// Over the layers of an image; a runtime names both as it likes.
struct SnapshotLayer {
  std::string overlay = {}, digest = {};
  bool operator==(const SnapshotLayer&) const = default;
};

enum class SnapshotState { creating, ready, failed, deleting };
std::string_view to_string(SnapshotState state);                          // Creating, ...
std::optional<SnapshotState> snapshot_state_from(std::string_view word);  // exactly

// Words that clients know.
namespace snapshot_reason {
inline constexpr char kAccepted[] = "snapshot_accepted";
inline constexpr char kReady[] = "snapshot_runtime_ready";
inline constexpr char kFailed[] = "snapshot_runtime_failed";
inline constexpr char kRecovered[] = "snapshot_recovery_ready";
inline constexpr char kLost[] = "snapshot_recovery_failed";
inline constexpr char kDeleting[] = "snapshot_delete_requested";
// Of one that nobody asked for: something is made of it at once, and it goes. No client ever sees it.
inline constexpr char kPassing[] = "snapshot_passing";
}  // namespace snapshot_reason

struct SnapshotStatus {
  SnapshotState state = SnapshotState::creating;
  std::string reason = {}, message = {};
  WallTime changed = {};
};

// What a sandbox has changed of the files that it began with.
struct FileChange {
  enum class Kind { added, modified, deleted } kind = Kind::added;
  std::string path = {};  // any bytes but NUL
  bool operator==(const FileChange&) const = default;
};

// What a new sandbox is made over.
struct SnapshotBase {
  std::string image = {};     // the reference that the first of all these sandboxes was made from
  std::string image_id = {};  // what that was then, where images have ids
  std::vector<SnapshotLayer> layers = {};
};

struct Snapshot {
  std::string id = {};
  std::string owner = {};
  std::string sandbox_id = {};  // may be long gone
  std::optional<std::string> name = {};
  SnapshotStatus status = {};
  SnapshotBase base = {};
  std::string network = {};  // the policy that its sandbox had then, as JSON; "": none
  std::string runtime = {};
  int64_t bytes = 0;  // that it added
  WallTime created = {};
};

struct SnapshotFilter {
  std::optional<std::string> sandbox_id = {}, name = {};
  std::optional<std::vector<SnapshotState>> states = {};  // any of these
};

// A snapshot under the name of an image.
inline constexpr std::string_view kSnapshotImage = "opensandbox-snapshots:";
std::string image_of_snapshot(std::string_view id);
// "" when it is any other image.
std::string_view snapshot_of_image(std::string_view image);

}  // namespace osb::sandbox
