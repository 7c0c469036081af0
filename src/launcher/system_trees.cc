#include "launcher/system_trees.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/error.h"
#include "launcher/rootless.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

// Of sysfs a sandbox sees what programs read to size themselves and to find their network. All the rest tells
// of the host: disks with the files and serial numbers behind them, boards, buses, drivers and their
// settings. Few, because every mount makes a sandbox slower to make and to take apart.
constexpr const char* kShownOfSysfs[] = {"devices/system", "devices/virtual/net"};
// Where those go, and places that programs list and may find empty; parents first.
constexpr const char* kSysfsDirectories[] = {"block",
                                             "bus",
                                             "class",
                                             "class/net",
                                             "dev",
                                             "devices",
                                             "devices/system",
                                             "devices/virtual",
                                             "devices/virtual/net",
                                             "fs",
                                             "fs/cgroup",
                                             "kernel"};
// A directory of links in the kernel's own, too. A sandbox cannot add a device to its network.
constexpr const char* kNetworkDevices[] = {"lo"};

int add_terminals_and_memory(int dev, uint32_t first_id, Nodes nodes) {
  char tty[16];
  std::snprintf(tty, sizeof tty, "%u",
                first_id + (nodes == Nodes::bound ? 0 : 5));  // by Debian's numbering and most others'
  if (::mkdirat(dev, "pts", 0755) < 0 || ::mkdirat(dev, "shm", 01777) < 0 ||
      ::fchownat(dev, "shm", first_id, first_id, AT_SYMLINK_NOFOLLOW) < 0)
    return -errno;
  const sys::MountOption pts[] = {
      {"newinstance", nullptr}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", tty}};
  int mount = sys::mount_filesystem("devpts", pts, 4, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return mount;
  int status = sys::attach_mount(mount, dev, "pts");
  ::close(mount);
  if (status < 0) return status;
  mount = sys::clone_mount(dev, "shm");
  if (mount < 0) return mount;
  status = sys::restrict_mount(mount, kQuiet);
  if (status == 0) status = sys::attach_mount(mount, dev, "shm");
  ::close(mount);
  return status;
}

int make_nodes(int dev, uint32_t first_id, Nodes nodes) {
  static constexpr struct {
    const char* name;
    unsigned major, minor;
  } kNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
  static constexpr struct {
    const char *name, *to;
  } kLinks[] = {{"fd", "/proc/self/fd"},
                {"stdin", "/proc/self/fd/0"},
                {"stdout", "/proc/self/fd/1"},
                {"stderr", "/proc/self/fd/2"},
                {"ptmx", "pts/ptmx"}};
  // Nodes are made here, while this process may; the sandbox itself never can.
  for (const auto& node : kNodes) {
    int status = 0;
    if (nodes == Nodes::bound) {
      status = bind_host_device(dev, node.name);
    } else {
      status = check_call(::mknodat(dev, node.name, S_IFCHR | 0666, makedev(node.major, node.minor)));
      if (status == 0)
        status = check_call(::fchownat(dev, node.name, first_id, first_id, AT_SYMLINK_NOFOLLOW));
    }
    if (status < 0) return status;
  }
  for (const auto& link : kLinks) {
    if (::symlinkat(link.to, dev, link.name) < 0) return -errno;
  }
  return 0;
}

// The finished tree or, closing it, the error.
int finished(int tree, int status) {
  if (status == 0) return tree;
  ::close(tree);
  return status;
}

}  // namespace

int make_sysfs_frame() {
  const sys::MountOption options[] = {{"mode", "0755"}, {"size", "4096"}, {"nr_inodes", "24"}};
  int frame = sys::mount_filesystem("tmpfs", options, 3, kQuiet);
  if (frame < 0) return frame;
  int status = 0;
  for (const char* name : kSysfsDirectories) {
    if (status == 0) status = check_call(::mkdirat(frame, name, 0755));
  }
  for (const char* name : kNetworkDevices) {
    char to[64], link[64];
    std::snprintf(to, sizeof to, "../../devices/virtual/net/%s", name);
    std::snprintf(link, sizeof link, "class/net/%s", name);
    if (status == 0) status = check_call(::symlinkat(to, frame, link));
  }
  if (status == 0) status = sys::restrict_mount(frame, MOUNT_ATTR_RDONLY);
  return finished(frame, status);
}

int show_sysfs(int sysfs, int frame) {
  for (const char* name : kShownOfSysfs) {
    int part = sys::clone_mount(sysfs, name);
    if (part == -ENOENT) continue;
    int status = part < 0 ? part : sys::attach_mount(part, frame, name);
    if (part >= 0) ::close(part);
    if (status < 0) return status;
  }
  return 0;
}

int make_sysfs_tree(int sysfs) {
  int frame = make_sysfs_frame();
  return frame < 0 ? frame : finished(frame, show_sysfs(sysfs, frame));
}

int make_device_frame(uint32_t first_id) {
  char owner[16], size[24];
  std::snprintf(owner, sizeof owner, "%u", first_id);
  std::snprintf(size, sizeof size, "%lld", static_cast<long long>(kStandardShm));
  // With room for /dev/shm, which is a part of it: every file system more makes others slower to take
  // apart.
  const sys::MountOption options[] = {
      {"mode", "0755"}, {"size", size}, {"nr_inodes", "16384"}, {"uid", owner}, {"gid", owner}};
  return sys::mount_filesystem("tmpfs", options, 5, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

int fill_devices(int dev, uint32_t first_id, Nodes nodes) {
  int status = make_nodes(dev, first_id, nodes);
  return status < 0 ? status : add_terminals_and_memory(dev, first_id, nodes);
}

int make_device_tree(uint32_t first_id) {
  int dev = make_device_frame(first_id);
  if (dev < 0) return dev;
  mode_t mask = ::umask(0);  // everybody in a sandbox may use its devices
  int status = fill_devices(dev, first_id, Nodes::made);
  ::umask(mask);
  return finished(dev, status);
}

int open_null(int dev) {
  int null = check_call(::openat(dev, "null", O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (null < 0) return null;
  struct stat info{};
  int status = check_call(::fstat(null, &info));
  if (status == 0 && S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3)) return null;
  ::close(null);
  return status < 0 ? status : -ENODEV;
}

}  // namespace osb::launcher
