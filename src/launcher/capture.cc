#include "launcher/capture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/records.h"
#include "launcher/snapshot_workers.h"
#include "launcher/uppers.h"
#include "sys/directory.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr char kImageAttribute[] = "trusted.opensandbox.image";
constexpr char kSizeAttribute[] = "trusted.opensandbox.size";

// As it was made (state_dir.cc, disk.cc): then it adds nothing.
Result<bool> is_untouched(int upper, uint32_t first_id) {
  struct stat info{};
  if (::fstat(upper, &info) < 0) return fail_errno("look at an upper");
  bool as_made = (info.st_mode & 07777) == 0755 && info.st_uid == first_id && info.st_gid == first_id;
  return as_made && TRY(sys::is_empty_directory(upper));
}

Result<std::string> image_of(int sandbox) {
  char value[128];
  ssize_t n = ::fgetxattr(sandbox, kImageAttribute, value, sizeof value);
  if (n < 0 && errno == ENODATA) return "";
  if (n < 0) return fail_errno("look at the sandbox's image");
  return std::string(value, static_cast<size_t>(n));
}

Result<std::vector<SnapshotLayer>> layers_below(int sandbox) {
  auto note = open_beneath(sandbox, kLayersNote, O_RDONLY);
  if (!note && note.error().code == Code::not_found) return std::vector<SnapshotLayer>();
  if (!note) return std::unexpected(std::move(note.error()));
  return TRY(decode_manifest(TRY(read_all(note->get(), kMaxManifest)))).layers;
}

// Where the copies of the uppers go.
Result<std::vector<Fd>> make_layers(const std::vector<Upper>& uppers, int staged) {
  std::vector<Fd> made;
  for (const Upper& upper : uppers) {
    if (::mkdirat(staged, upper.overlay.c_str(), 0755) < 0) return fail_errno("make a layer");
    made.push_back(TRY(open_beneath(staged, upper.overlay, O_RDONLY | O_DIRECTORY)));
  }
  return made;
}

// As layers of images have it (image/layer_import.cc), for images that are made of this.
Result<void> note_size(int layer, const CopiedLayer& copied) {
  std::string size = std::to_string(copied.bytes) + " " + std::to_string(copied.entries);
  if (::fsetxattr(layer, kSizeAttribute, size.data(), size.size(), 0) < 0)
    return fail_errno("note the layer's size");
  return {};
}

}  // namespace

Result<void> capture_sandbox(const StateDir& state, const SnapshotStore& snapshots, const std::string& id,
                             const std::string& snapshot, const Halfway& halfway) {
  Fd sandbox = TRY(state.open_sandbox(id));
  uint32_t first_id = TRY(state.range_of(id));
  Uppers where = TRY(open_uppers(sandbox.get()));
  std::vector<Upper> uppers = TRY(find_uppers(where));
  Manifest manifest{.boot = TRY(sys::boot_id()), .image = TRY(image_of(sandbox.get()))};
  std::vector<SnapshotLayer> below = TRY(layers_below(sandbox.get()));
  if (uppers.size() + below.size() > kMostSnapshotLayers)
    return fail(Code::too_large, "the sandbox lies on " + std::to_string(below.size()) +
                                     " layers of snapshots, and there can be no more than " +
                                     std::to_string(kMostSnapshotLayers));
  Fd staged = TRY(snapshots.stage(snapshot));
  Cleanup undo;
  undo.push([&] { (void)snapshots.drop(snapshot); });
  std::vector<Fd> layers = TRY(make_layers(uppers, staged.get()));
  CopyOrder order{state.path(state::kMount), first_id, {}};
  for (size_t i = 0; i < uppers.size(); ++i)
    order.pairs.push_back({uppers[i].directory.get(), layers[i].get(), where.is_mounted_alone});
  std::vector<CopiedLayer> copied = TRY(copy_layers(order, halfway));
  for (size_t i = 0; i < copied.size(); ++i) {
    const std::string& overlay = uppers[i].overlay;
    if (TRY(is_untouched(uppers[i].directory.get(), first_id))) {
      if (::unlinkat(staged.get(), overlay.c_str(), AT_REMOVEDIR) < 0) return fail_errno("remove a layer");
      continue;
    }
    TRY(note_size(layers[i].get(), copied[i]));
    manifest.bytes += copied[i].bytes;
    manifest.entries += copied[i].entries;
    manifest.layers.push_back({overlay, copied[i].digest, true});
  }
  manifest.layers.insert(manifest.layers.end(), below.begin(), below.end());
  TRY(snapshots.finish_staging(staged.get(), manifest, TRY(read_record(sandbox.get()))));
  undo.release();
  return {};
}

}  // namespace osb::launcher
