#pragma once

// A file system of a fixed size for what one sandbox writes: an ext4 image in a sparse file, on a loop device
// that the kernel takes away with the last user. It is mounted in the sandbox's mount namespace only, over
// the sandbox's own directory, so the overlays find their uppers where they always are.
//
// All of this runs in the new process, between clone and exec: no allocation, errors are negative errno
// values. Formatting takes tens of milliseconds, so an empty image of each size is kept and copied (its few
// hundred kilobytes of data, not its holes).

#include <cstddef>
#include <cstdint>

namespace osb::launcher {

struct DiskOrder {
  int64_t bytes = 0;                // 0: no limit, no disk
  const char* image = nullptr;      // all paths relative to the state directory, the work directory by now
  const char* blank = nullptr;      // the formatted one of this size, made when it is missing
  const char* scratch = nullptr;    // where it is made
  const char* directory = nullptr;  // mounted here
  const char* const* uppers = nullptr;  // directories made in it, owned by `owner`
  size_t upper_count = 0;
  uint32_t owner = 0;
};

int make_disk(const DiskOrder& order);

// Whether this host has what it takes; an explanation when not, else null.
const char* disk_obstacle();

}  // namespace osb::launcher
