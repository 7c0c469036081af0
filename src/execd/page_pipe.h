#pragma once

// File content on its way from a worker to a socket as references to the kernel's own pages: it is copied
// neither into this process nor out of it. Two of them take turns, like Pieces, for a pipe that is being
// filled from a slow disk cannot be emptied.
//
// What waits in the pipe is the file's memory and not a copy: a program that writes to the file changes it.

#include <cstddef>
#include <cstdint>

#include "io/pipe.h"

namespace osb::execd {

class PagePipe {
 public:
  static constexpr size_t kCapacity = io::Pipe::kCapacity;

  // Fills the pipe, which must be empty, with up to `limit` bytes of the file; blocks for the disk. `size` is
  // less at the end of the file and where the kernel gives pipes less room. Code::unsupported when there is
  // no pipe to be had or the file system does not take part.
  Result<void> fill(int file, uint64_t offset, size_t limit);

  int reader() const { return pipe_.read.get(); }
  size_t size = 0;

 private:
  io::Pipe pipe_;
};

}  // namespace osb::execd
