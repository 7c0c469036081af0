#include <cstring>

#include "tools.h"

namespace osb::probe {
namespace {

struct Handle {
  file_handle head;
  unsigned char bytes[MAX_HANDLE_SZ];
};

// A handle names an inode of the whole file system, whatever part of it is mounted here: inode 2 is the root
// of ext4, the handle of a bind-mounted file opens its neighbours.
void open_root_inode(Attempts& a, const std::string& path, int mount) {
  Handle handle = {};
  handle.head.handle_bytes = 8;
  handle.head.handle_type = 1;
  const unsigned inode = 2;
  std::memcpy(handle.bytes, &inode, sizeof inode);
  File opened = ::open_by_handle_at(mount, &handle.head, O_RDONLY | O_CLOEXEC);
  a.call("open_by_handle_at(2)", "inode 2 through " + path, opened.fd());
}

void run(Attempts& a, Args) {
  for (const std::string path : {"/", "/etc", "/usr", "/tmp", "/proc", "/sys", "/dev", "/etc/hosts",
                                 "/etc/resolv.conf", "/etc/hostname"}) {
    File mount = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (!mount.ok()) continue;
    open_root_inode(a, path, mount.fd());
    Handle handle = {};
    handle.head.handle_bytes = MAX_HANDLE_SZ;
    int mount_id = 0;
    if (::name_to_handle_at(AT_FDCWD, path.c_str(), &handle.head, &mount_id, 0) < 0) {
      a.call("name_to_handle_at(2)", path, -1);
      continue;
    }
    File opened = ::open_by_handle_at(mount.fd(), &handle.head, O_RDONLY | O_CLOEXEC);
    a.call("open_by_handle_at(2)", "of " + path, opened.fd());
  }
}

}  // namespace

extern const Probe probe_file_handles = {
    "file_handles", "open files of the underlying file system by handle (open_by_handle_at)", nullptr, run};

}  // namespace osb::probe
