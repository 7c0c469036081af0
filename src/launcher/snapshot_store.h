#pragma once

// Snapshots on disk. All of it is root's; the layers have canonical ids, as those of images have.
//
//   images/snapshots/layers/<digest>/         what a sandbox had changed, for one overlay
//   images/snapshots/kept/<id>/               manifest and record of a snapshot
//   images/snapshots/staging/<id>/<overlay>/  layers that are being made
//   images/snapshots/images/<id>              layers that an image has; written by the store of images, see
//                                             image/store.h
//
// Whatever is in kept is complete and on the disk. A staged one is complete when it has a manifest of this
// boot: keep() goes on from there, however often it was interrupted; for this boot it only places the layers.
// A layer is removed when no snapshot, image, sandbox or spare names it: sweep() reads all of them, and there
// is no count that could be wrong.

#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/snapshot_manifest.h"

namespace osb::launcher {

// In the directory of a sandbox or spare: the layers of snapshots that it uses (used_layers()).
inline constexpr char kLayersNote[] = "layers";

class SnapshotStore {
 public:
  // Makes what is missing, and clears away what was being made when its maker ended.
  static Result<SnapshotStore> open(const std::string& state_dir);

  // Code::not_found unless it is kept for so long, or longer.
  Result<FoundSnapshot> find(const std::string& id, Lasting lasting) const;
  // Complete ones, staged or kept, sorted.
  Result<std::vector<std::string>> list() const;

  // A fresh directory for a snapshot that is being made. Code::already_exists.
  Result<Fd> stage(const std::string& id) const;
  // The last thing that is written to it.
  Result<void> finish_staging(int staged, const Manifest& manifest, std::string_view record) const;
  // Gives the staged snapshot its place: on the disk when it is for good, shared where an equal layer is
  // there. Takes its time.
  Result<void> keep(const std::string& id, Lasting lasting) const;
  // Staged or kept; fine when there is none. Its layers go with the next sweep.
  Result<void> drop(const std::string& id) const;

  // Moves layers that nobody uses to the trash. True when something went.
  Result<bool> sweep() const;
  bool has_layers() const;

 private:
  explicit SnapshotStore(std::string state_dir) : state_dir_(std::move(state_dir)) {}
  Result<Manifest> find_staged(const std::string& id) const;
  Result<void> place_layers(int staged, Manifest& manifest) const;
  Result<void> name_layers(int staged, Manifest& manifest) const;
  Result<void> place_layer(int staged, const SnapshotLayer& layer) const;
  Result<bool> is_same(int staged, const SnapshotLayer& layer) const;
  Result<void> to_trash(int from, const std::string& name) const;
  Result<std::set<std::string>> used() const;

  std::string state_dir_;
  Fd layers_, kept_, staging_, images_, trash_;
};

}  // namespace osb::launcher
