#pragma once

// Pieces that several probes share. All of it runs in a probe's own child.

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/fd.h"

namespace osb::cli {

// A directory below `parent` with a random name, removed with everything in it at the end.
class ScratchDir {
 public:
  static Result<ScratchDir> create(const std::string& parent);
  ScratchDir(ScratchDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~ScratchDir();
  const std::string& path() const { return path_; }
  Result<std::string> add(const std::string& name) const;  // a directory in it

 private:
  explicit ScratchDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Runs `body` with a scratch directory, in a child with a mount namespace of its own. The process that
// removes the directory never sees what `body` mounted there, so it cannot remove anything through such a
// mount.
using MountBody = std::function<Result<std::string>(const ScratchDir&)>;
Result<std::string> with_private_mounts(const std::string& parent, const MountBody& body);

// Forks and runs `body`, whose result is the exit status; returns it. A signal is an error.
Result<int> exit_status_of(const std::function<int()>& body);

// The namespace as a descriptor; the process that made it is gone when this returns.
Result<Fd> mapped_user_namespace();

}  // namespace osb::cli
