#pragma once

// A plan's steps made ready for the new process: every descriptor open, every string written.

#include <string>
#include <vector>

#include "launcher/child.h"
#include "launcher/roots.h"
#include "launcher/settings.h"
#include "launcher/state_dir.h"
#include "launcher/volume_store.h"

namespace osb::launcher {

// The layers of every overlay, in the plan's order.
Result<Layers> open_layers(const Plan& plan, const Settings& settings);

class ReadySteps {
 public:
  // Borrows from `plan`. What is not mounted ahead (no root, a sysfs of -1) the new process mounts itself.
  struct Ahead {
    const Root* root = nullptr;
    int sysfs = -1;       // of the sandbox's network
    int sysfs_tree = -1;  // what it shows of that
    int devices = -1;
    // Where a sandbox with a disk limit has its file system: nowhere, or over its directory (older kernels).
    enum class Disk { attached, detached } disk = Disk::attached;
  };
  // Where things are looked up.
  struct Places {
    const Settings& settings;
    const StateDir& state;
    const VolumeStore& volumes;
  };
  // `first_id`: what uid and gid 0 of the sandbox are outside.
  static Result<ReadySteps> make(const Plan& plan, const Layers& layers, const Ahead& ahead,
                                 uint32_t first_id, const Places& places);

  const ReadyStep* data() const { return steps_.data(); }
  size_t size() const { return steps_.size(); }
  // Something that it may write is root's on the host: it is to have no way to give a file a privilege.
  bool writes_as_root() const { return writes_as_root_; }

 private:
  Result<void> add_mount(int source, const std::string& what);
  Result<int> write_as_root(int source, Plan::Kernel kernel);
  Result<void> add_volume(const Plan& plan, ReadyStep& ready, uint32_t first_id, const Places& places);

  std::vector<Fd> opened_;
  std::vector<std::vector<int>> sources_;
  std::vector<std::string> paths_;
  std::vector<ReadyStep> steps_;
  bool writes_as_root_ = false;
};

}  // namespace osb::launcher
