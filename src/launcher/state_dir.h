#pragma once

// The launcher's part of the state directory: one directory per sandbox, its sockets, and the trash.

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/identity.h"
#include "launcher/settings.h"

namespace osb::launcher {

class StateDir {
 public:
  // Makes what is missing in a directory that is ours (claim_state_dir), with the right owners, and takes the
  // lock: one service per state directory.
  static Result<StateDir> open(const Settings& settings);

  const Identity& identity() const { return identity_; }

  // Empty directories that a sandbox being made covers with its layers, in its own mount namespace.
  Result<void> ensure_lowers(size_t count);

  // Directories <layer>.upper and <layer>.work for each layer, owned by the sandbox's root, and a note of the
  // image that its lower layers belong to. Code::already_exists.
  // `snapshots`: layers of snapshots that it uses (used_layers()), noted likewise.
  Result<Fd> create_sandbox(const std::string& id, uint32_t first_id, const std::string& image,
                            const std::vector<std::string>& layers, const std::string& snapshots = "") const;
  Result<Fd> open_sandbox(const std::string& id) const;
  // The same directories without a sandbox. They do not outlive the launcher that made them.
  Result<Fd> create_spare(const std::string& name, uint32_t first_id, const std::string& image,
                          const std::vector<std::string>& layers, const std::string& snapshots = "") const;
  Result<void> spare_to_sandbox(const std::string& name, const std::string& id) const;
  // Takes its sockets away, too.
  Result<void> sandbox_to_spare(const std::string& id, const std::string& name) const;
  Result<void> discard_spare(const std::string& name) const;
  // Relative to the state directory.
  std::string upper(const std::string& id, const std::string& layer) const;
  // A formatted, empty file system of this size; relative to the state directory, as the above. It may be
  // missing. Those of different kinds are no substitutes for each other.
  std::string blank_disk(int64_t bytes, const std::string& kind = "") const;
  std::string work(const std::string& id, const std::string& layer) const;
  // The first id of the sandbox's range; Code::not_found.
  Result<uint32_t> range_of(const std::string& id) const;
  Result<std::vector<std::string>> list() const;  // sorted
  // The sandbox's directory and sockets go at once; what is in it goes to the trash. Fine when nothing is
  // there.
  Result<void> discard(const std::string& id) const;

  // A listening socket that only the service's group may connect to.
  Result<Fd> listen(const std::string& id, const char* suffix) const;

  // Takes its name away; fine when there is none.
  void remove_socket(const std::string& id, const char* suffix) const;

  // At the end: takes the directory of sockets away when no sandbox needs it.
  void leave() const;

  bool trash_is_empty() const;
  // In a process of its own: one round of removing what is in the trash, with no more rights than that takes.
  // Exits with 0 when something could be removed: then there may be more.
  [[noreturn]] void run_trash_worker() const;

  std::string path(const char* name) const { return settings_->state_dir + "/" + name; }

 private:
  explicit StateDir(const Settings& settings) : settings_(&settings) {}
  const Settings* settings_;
  Identity identity_;
  Result<void> remove_sockets(const std::string& id) const;
  Result<void> move_to_trash(int from, const std::string& name) const;

  Fd lock_, sandboxes_, spares_, trash_, disks_;
  size_t lowers_ = 0;  // how many there are
};

}  // namespace osb::launcher
