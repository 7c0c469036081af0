#pragma once

// Where layers lie between their download and their unpacking: files named by their digests, written by
// fetchers, in a directory that is theirs and that only we can reach. What a killed pull left there is where
// the next one goes on.

#include <string>

#include "base/fd.h"

namespace osb::registry {

class BlobDirectory {
 public:
  // Below the image store, which exists.
  static Result<BlobDirectory> open(const std::string& state_dir);

  int fd() const { return dir_.get(); }
  // Whole or not; -1 when there is nothing.
  int64_t size_of(const std::string& digest) const;
  Result<Fd> open_blob(const std::string& digest) const;
  void remove(const std::string& digest) const;
  // Unless somebody is downloading it.
  void remove_idle(const std::string& digest) const;
  // What nobody went on with for a day, or everything. Bytes that were freed.
  enum class Which { forgotten, all };
  uint64_t sweep(Which which) const;

 private:
  explicit BlobDirectory(Fd dir) : dir_(std::move(dir)) {}
  Fd dir_;
};

}  // namespace osb::registry
