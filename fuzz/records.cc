// What a service finds on its disk after a crash: a sandbox's record, the service's identity, lists in rows.
// Anything is read or refused, and what is read is written the same.
#include "base/clock.h"
#include "check.h"
#include "image/commit.h"
#include "json/string_lists.h"
#include "launcher/identity.h"
#include "launcher/snapshot_manifest.h"
#include "launcher/volume_manifest.h"
#include "runtime/native/changes.h"
#include "server/record.h"

using namespace osb;

namespace {

void check_record(std::string_view text) {
  auto row = server::from_record(text);
  if (!row) {
    CHECK(row.error().code == Code::corrupt);
    return;
  }
  std::string written = server::to_record(*row);
  auto again = server::from_record(written);
  CHECK(again && server::to_record(*again) == written);
  CHECK(again->id == row->id && again->owner == row->owner && again->expires == row->expires);
}

void check_lists(std::string_view text) {
  if (auto list = json::parse_list(text)) CHECK(json::parse_list(json::list_text(*list)) == *list);
  if (auto map = json::parse_map(text)) CHECK(json::parse_map(json::map_text(*map)) == *map);
}

void check_identity(std::string_view text) {
  auto identity = launcher::parse_identity(text);
  if (!identity) return;
  CHECK(identity->id.size() == 32 && identity->id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(identity->group.starts_with("opensandbox-") && identity->group.find('/') == std::string::npos);
}

void check_manifest(std::string_view text) {
  auto manifest = launcher::decode_manifest(text);
  // The same file, as the store of images reads it: what one takes the other takes for the same.
  auto parts = image::parse_snapshot(text);
  if (!manifest) return;
  if (parts && manifest->image.empty()) CHECK(parts->image.empty());
  CHECK(manifest->layers.size() <= launcher::kMostSnapshotLayers);
  for (const auto& layer : manifest->layers) {
    CHECK(layer.digest.size() == 64 && layer.overlay.find('/') == std::string::npos && layer.overlay != "..");
  }
  auto again = launcher::decode_manifest(launcher::encode(*manifest));
  CHECK(again && again->layers == manifest->layers && again->image == manifest->image);
}

void check_volume_manifest(std::string_view text) {
  auto manifest = launcher::decode_volume_manifest(text);
  if (!manifest) return;
  CHECK(manifest->created >= 0);
  CHECK(launcher::decode_volume_manifest(launcher::encode(*manifest)) == *manifest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_record(text);
  check_lists(text);
  check_identity(text);
  check_manifest(text);
  check_volume_manifest(text);
  (void)server::volumes_of(text);
  if (auto changes = runtime::parse_changes(text)) {
    for (const auto& change : *changes) CHECK(change.path.starts_with('/'));
  }
  (void)server::environment_of(text);
  return 0;
}
