#pragma once

// A file system of a fixed size for what one sandbox writes: an ext4 image in a sparse file, on a loop device
// that the kernel takes away with the last user. It is mounted for the sandbox only: the overlays find their
// uppers through its descriptor, or, on kernels whose overlays need names, over the sandbox's own directory.
//
// The image is opened through a mount of that directory alone: whoever asks the kernel which file is behind a
// loop device (every user of the host may) learns "/disk.img" and no name of a sandbox or of the service.
//
// All of this runs in the new process, between clone and exec: no allocation, errors are negative errno
// values. Formatting takes tens of milliseconds, so an empty image of each size is kept and copied (its few
// hundred kilobytes of data, not its holes).

#include <cstddef>
#include <cstdint>

namespace osb::launcher {

struct DiskOrder {
  int64_t bytes = 0;                    // 0: no limit, no disk
  const char* directory = nullptr;      // the image lies here; paths are relative to the work directory
  const char* blank = nullptr;          // the formatted one of this size, made when it is missing
  const char* scratch = nullptr;        // where it is made
  const char* const* uppers = nullptr;  // names of directories made in it, owned by `owner`
  size_t upper_count = 0;
  uint32_t owner = 0;
};

// A detached mount.
int make_disk(const DiskOrder& order);

// Another mount of the file system in an image that a sandbox uses, found by the loop device that has this
// file behind it; read-only. The kernel knows the file system by its device, so what one mount has written
// the other sees. -ENOENT when no device has it: then nobody uses it.
int mount_disk_again(int image);

// Those of volumes, which last: with a journal, so that a crash of the host leaves a file system that can be
// mounted, and as empty as a directory that was just made. Both take their time; the first of a size takes
// more, because it is formatted.
struct LastingDiskOrder {
  int64_t bytes = 0;
  const char* blank = nullptr;  // the formatted one of this size and owner, made when it is missing
  const char* scratch = nullptr;
  uint32_t owner = 0;  // of its root
};
// Into an empty image.
int fill_lasting_disk(int image, const LastingDiskOrder& order);
// A detached mount of the file system in an image: the one that others use already, if there is one. One
// process at a time: two devices over one file would be two file systems in one place.
int mount_lasting_disk(int image);

// Whether this host has what it takes; an explanation when not, else null.
const char* disk_obstacle();

}  // namespace osb::launcher
