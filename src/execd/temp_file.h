#pragma once

// A file without a name, for output that does not fit into memory: nobody else can open it, and it is gone
// with its descriptor. In TMPDIR, else /tmp; in memory (and then bounded) where neither can be written.

#include <cstdint>
#include <string_view>

#include "base/fd.h"

namespace osb::execd {

class TempFile {
 public:
  static Result<TempFile> create();

  uint64_t size() const { return size_; }
  // On failure nothing was taken.
  Result<void> append(std::string_view bytes);
  // At most `limit` bytes from `offset`; fewer only at the end.
  Result<size_t> read_at(uint64_t offset, char* into, size_t limit) const;
  void truncate();
  // Gives the disk space of everything before `offset` back, in large steps; it reads as zeros then. False:
  // the file system cannot.
  bool discard_before(uint64_t offset);
  int fd() const { return fd_.get(); }

 private:
  TempFile(Fd fd, uint64_t limit) : fd_(std::move(fd)), limit_(limit) {}
  Fd fd_;
  uint64_t size_ = 0;
  uint64_t discarded_ = 0;
  uint64_t limit_;
};

}  // namespace osb::execd
