#pragma once

// Named volumes: directories of the service that outlive sandboxes, and that several may have at once.
//
//   volumes/<owner>/<name>/manifest   what it is, as lines of text
//                         /files/     what is in it, of ids that no sandbox has (volume_ids.h); or
//                         /disk.img   the same in a file system of its own, when it has a size (disk.h)
//
// One that has its name is complete: it got it by a rename. Who uses a volume says the file `volumes` in the
// sandbox's directory, written before the volume is opened; nobody counts. One that is to end with its
// sandboxes goes with the last of them, and a start removes those whose last one went while nobody watched.
//
// Belongs to the launcher's thread.

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "launcher/host_paths.h"
#include "launcher/plan.h"
#include "launcher/state_dir.h"
#include "launcher/volume_manifest.h"
#include "launcher/volume_path.h"

namespace osb::launcher {

struct ListedVolume {
  std::string name;
  VolumeManifest manifest;
  uint32_t users = 0;  // sandboxes that have it
};

inline constexpr size_t kMostVolumes = 4096;  // of an owner

class VolumeStore {
 public:
  static Result<VolumeStore> open(const Settings& settings, const StateDir& state);

  Result<VolumeManifest> find(const VolumePath& path) const;  // Code::not_found
  // Whether one could be made so: the size is in range, and this host can enforce it.
  Result<void> check(const VolumeManifest& wanted) const;
  // Its time is now. Code::already_exists; Code::exhausted when the owner has kMostVolumes. One with a size
  // takes a while, and every one waits for the disk.
  Result<void> make(const VolumePath& path, VolumeManifest manifest) const;

  // The directory in the volume that the path names, with its parents.
  Result<void> make_directories(const VolumePath& path) const;
  // What the path names, as a detached mount that nobody else has. Code::not_found; Code::invalid_argument
  // when a link that leads out of the volume, or a file, is on the way.
  Result<Fd> mount(const VolumePath& path) const;

  // At most `most` of an owner's, in order, behind `after`.
  Result<std::vector<ListedVolume>> list(const std::string& owner, const std::string& after,
                                         size_t most) const;
  // Code::not_found; Code::wrong_state while a sandbox uses it.
  Result<void> drop(const VolumePath& path) const;

  // What a sandbox's directory says that the sandbox uses: written before anything of it is opened, and gone
  // before another sandbox gets the directory.
  Result<void> note(const Plan& plan) const;
  static void forget_note(int directory);
  std::vector<std::string> used_by(const std::string& sandbox) const;  // as owner/name
  // A sandbox that had these is gone. True when something went to the trash.
  bool release(const std::vector<std::string>& volumes) const;

 private:
  VolumeStore(const Settings& settings, const StateDir& state) : settings_(&settings), state_(&state) {}
  Result<Fd> open_files(const VolumePath& path) const;
  Result<Fd> mount_disk(const VolumePath& path) const;
  Result<void> fill(int directory, const std::string& name, const VolumeManifest& manifest) const;
  Result<uint32_t> users(const std::string& volume) const;
  Result<void> to_trash(int from, const std::string& name) const;
  Result<void> sweep() const;

  const Settings* settings_;
  const StateDir* state_;
  Fd volumes_, trash_;
};

}  // namespace osb::launcher
