#include "sandbox/snapshot.h"

namespace osb::sandbox {
namespace {

constexpr std::string_view kWords[] = {"Creating", "Ready", "Failed", "Deleting"};

}  // namespace

std::string_view to_string(SnapshotState state) { return kWords[static_cast<int>(state)]; }

std::optional<SnapshotState> snapshot_state_from(std::string_view word) {
  for (int i = 0; i < 4; ++i) {
    if (kWords[i] == word) return static_cast<SnapshotState>(i);
  }
  return std::nullopt;
}

std::string image_of_snapshot(std::string_view id) { return std::string(kSnapshotImage) + std::string(id); }

std::string_view snapshot_of_image(std::string_view image) {
  return image.starts_with(kSnapshotImage) ? image.substr(kSnapshotImage.size()) : std::string_view();
}

}  // namespace osb::sandbox
