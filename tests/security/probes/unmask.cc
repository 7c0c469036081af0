#include <linux/mount.h>
#include <sys/mount.h>

#include <algorithm>

#include "tools.h"

namespace osb::probe {
namespace {

// Takes mounts away or makes them writable, to uncover what they hide. Stops at the first that yields: what
// was taken away cannot be put back from here.
bool uncover(Attempts& a, const MountEntry& entry) {
  const char* point = entry.point.c_str();
  if (entry.read_only()) {
    if (a.call("mount(2)", "remount read-write of " + entry.point,
               ::mount(nullptr, point, nullptr, MS_REMOUNT | MS_BIND, nullptr)))
      return ::mount(nullptr, point, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), true;
    mount_attr writable = {};
    writable.attr_clr = MOUNT_ATTR_RDONLY;
    if (a.call("mount_setattr(2)", "read-write of " + entry.point,
               ::syscall(SYS_mount_setattr, AT_FDCWD, point, 0, &writable, sizeof writable)))
      return true;
  }
  for (const int flags : {MNT_EXPIRE, MNT_DETACH, MNT_FORCE})
    if (a.gate("umount2(2)", entry.point, ::umount2(point, flags | UMOUNT_NOFOLLOW))) return true;
  return false;
}

void run(Attempts& a, Args) {
  std::vector<MountEntry> entries = mounts();
  std::erase_if(entries, [](const MountEntry& entry) { return entry.point == "/"; });
  if (entries.empty()) return a.skipped("nothing is mounted below /");
  // The deepest first: those are the masks.
  std::ranges::sort(entries, [](const auto& x, const auto& y) {
    return std::ranges::count(x.point, '/') > std::ranges::count(y.point, '/');
  });
  for (const MountEntry& entry : entries)
    if (uncover(a, entry)) return;
}

}  // namespace

extern const Probe probe_unmask = {"unmask", "unmount masks and make read-only mounts writable", nullptr,
                                   run};

}  // namespace osb::probe
