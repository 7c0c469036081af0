#pragma once

// The writable file systems of sandboxes.
//
// A root is a sandbox's directory together with the overlays mounted over it. Mounting them is a good part of
// a create, and taking them apart a good part of a delete, so roots are made ahead of need, and one whose
// sandbox left no trace in it serves the next sandbox of the same image: same id range, same layers, empty
// uppers, nothing cached. Needs a kernel that can copy a detached mount (6.15); on others each sandbox mounts
// its own overlays while it is being made.

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/plan.h"
#include "launcher/state_dir.h"

namespace osb::launcher {

struct Root {
  std::string key;  // what it can be used for; see root_key
  uint32_t range = 0;
  // One per overlay of the plan, in its order.
  struct Overlay {
    std::string name;   // of the layer
    Fd mount;           // detached
    struct stat upper;  // as it was when nobody had used it
    std::vector<std::pair<dev_t, ino_t>> lowers;
  };
  std::vector<Overlay> overlays;
  Fd devices;  // its /dev (system_trees.h), for one sandbox. May be none.
};

// Plans with the same key can use each other's roots.
std::string root_key(const Plan& plan);

// The layers of a plan's overlays, opened: one vector per overlay.
using Layers = std::vector<std::vector<Fd>>;

class Roots {
 public:
  Roots(const Settings& settings, const StateDir& state);

  // Whether this kernel and this service can do it.
  bool available() const { return available_; }

  // Mounts the overlays of a plan over `directory`, which has an upper and a work directory for each.
  // `layers` are copied with the ids of `user_namespace`.
  static Result<Root> make(const Plan& plan, const Layers& layers, int directory, int user_namespace);

  // Whether the layers that a plan names today are the ones it was made of.
  static bool fits(const Root& root, const Layers& layers);
  // Whether everything in it is as it was made.
  static bool untouched(const Root& root, int directory);

  // The spares: roots that wait for a sandbox, in directories of their own.
  std::optional<Root> take(const std::string& key);
  size_t count(const std::string& key) const;
  bool full() const;
  bool empty() const { return spares_.empty(); }
  Root take_oldest();  // not when it is empty
  // One that has a layer below this path in it.
  std::optional<Root> take_over(std::string_view path);
  // Nothing that a sandbox looked at stays in the memory of the file systems.
  Result<void> keep(Root root);
  // Adds devices to a spare without; false when `enough` have some, or when it failed.
  bool complete(const std::string& key, size_t enough);

 private:
  std::vector<Root> spares_;
  bool available_ = false;
  bool devices_ = true;  // until the kernel says that it cannot
};

}  // namespace osb::launcher
