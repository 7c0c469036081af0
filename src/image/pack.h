#pragma once

// A directory tree as a tar stream: what importing a plain root directory unpacks again, confined. Names in
// order, so that the same tree gives the same bytes.

#include <string>

#include "base/fd.h"

namespace osb::image {

// Writes everything below `directory` to `out`. Follows no link, stays on one file system; sockets are left
// out. load_libraries() comes first.
Result<void> pack(int directory, int out);

// The same in a process of its own that may read every file and do nothing else.
class Packer {
 public:
  static Result<Packer> start(const std::string& directory);
  Packer(Packer&&) = default;
  ~Packer();

  int stream() const { return stream_.get(); }
  // After the stream was read to its end: whether it was complete.
  Result<void> finish();

 private:
  Packer(pid_t pid, Fd stream, Fd errors)
      : pid_(pid), stream_(std::move(stream)), errors_(std::move(errors)) {}
  pid_t pid_ = -1;
  Fd stream_, errors_;
};

}  // namespace osb::image
