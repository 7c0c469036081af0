#include "launcher/root_builder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

#include "base/error.h"
#include "launcher/checks.h"
#include "launcher/rootless.h"
#include "launcher/runsc_bundle.h"
#include "launcher/settings.h"
#include "launcher/system_trees.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr uint64_t kKernel = kQuiet | MOUNT_ATTR_NOEXEC;
constexpr size_t kMostLayers = 256;

}  // namespace

// A path of the new root. Where the image's own symlinks are followed, they are resolved inside it, as if it
// were already "/".
int RootBuilder::open_in_root(const char* path, int flags, Links links) const {
  struct open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  if (links == Links::refused) how.resolve |= RESOLVE_NO_SYMLINKS;
  return check_call(::syscall(SYS_openat2, root_, path, &how, sizeof how));
}

// A directory owned by the sandbox's root. In a volume that is root's doing: the kernel makes nothing there
// for ids that the mount does not map, and so not for those of this process.
int RootBuilder::make_directory(int parent, const char* name) const {
  int made = check_call(::mkdirat(parent, name, 0755));
  if (made == -EOVERFLOW) {
    ::setfsgid(order_.first_id);
    ::setfsuid(order_.first_id);
    made = check_call(::mkdirat(parent, name, 0755));
    ::setfsuid(0);
    ::setfsgid(0);
    return made;
  }
  if (made < 0) return made;
  return check_call(::fchownat(parent, name, order_.first_id, order_.first_id, AT_SYMLINK_NOFOLLOW));
}

// Every missing directory of `path` is made.
int RootBuilder::ensure_directory(const char* path, Links links) const {
  char part[4096];
  for (size_t i = 1;; ++i) {
    if (path[i] != '/' && path[i] != '\0') continue;
    if (i >= sizeof part) return -ENAMETOOLONG;
    for (size_t k = 0; k < i; ++k) part[k] = path[k];
    part[i] = '\0';
    int there = open_in_root(part, O_PATH, links);
    if (there >= 0) {
      ::close(there);
    } else if (there == -ENOENT) {
      size_t slash = i;
      while (part[slash - 1] != '/') --slash;
      part[slash - 1] = '\0';
      int parent = slash == 1 ? ::dup(root_) : open_in_root(part, O_PATH | O_DIRECTORY, links);
      if (parent < 0) return parent;
      int made = make_directory(parent, part + slash);
      ::close(parent);
      if (made < 0) return made;
    } else {
      return there;
    }
    if (path[i] == '\0') return 0;
  }
}

bool RootBuilder::is_root(int directory) const {
  struct stat root{}, found{};
  return ::fstat(root_, &root) == 0 && ::fstat(directory, &found) == 0 && root.st_dev == found.st_dev &&
         root.st_ino == found.st_ino;
}

// A directory of the new root to mount something at, made if it is missing.
int RootBuilder::open_mount_point(const char* target, Links links) const {
  int at = open_in_root(target, O_PATH | O_DIRECTORY, links);
  if (at == -ENOENT) {
    int made = ensure_directory(target, links);
    at = made < 0 ? made : open_in_root(target, O_PATH | O_DIRECTORY, links);
  }
  // A link of the image may lead to "/" itself. What is mounted there is found by "/..", beside all checks.
  if (at < 0 || !is_root(at)) return at;
  ::close(at);
  return -ELOOP;
}

// Attaches a detached mount at a directory of the new root.
int RootBuilder::attach(int mount, const char* target, Links links) const {
  int at = open_mount_point(target, links);
  if (at < 0) return at;
  int status = sys::attach_mount_to(mount, at);
  ::close(at);
  return status;
}

// The same, and closes it.
int RootBuilder::place(int mount, const char* target, Links links) const {
  if (mount < 0) return mount;
  int status = attach(mount, target, links);
  ::close(mount);
  return status;
}

// Not possible without root, and not needed: ids inside are then those of our own user namespace.
int RootBuilder::map_ids(int mount) const {
  return order_.rootless ? 0 : sys::idmap_mount(mount, order_.user_namespace);
}

// The layers become visible below the lowers directory, in this mount namespace only, with the sandbox's ids.
int RootBuilder::mount_overlay(const ReadyStep& ready) {
  size_t count = ready.step->lowers.size();
  char names[kMostLayers][16];
  sys::MountOption options[kMostLayers + 2 + std::size(sys::kUserOverlay)];
  int used = 0;
  if (count > kMostLayers) return -E2BIG;
  for (size_t i = 0; i < count; ++i) {
    std::snprintf(names[i], sizeof names[i], "%s/%d", state::kLowers, lowers_used_++);
    int layer = ready.sources[i];
    int status = map_ids(layer);
    if (status == 0) status = sys::attach_mount(layer, AT_FDCWD, names[i]);
    if (status < 0) return status;
    // A single layer has a name that every kernel takes.
    options[used++] = {count == 1 ? "lowerdir" : "lowerdir+", names[i]};
  }
  options[used++] = {"upperdir", ready.upper};
  options[used++] = {"workdir", ready.work};
  auto add = [&](const auto& more) {
    for (const sys::MountOption& option : more) options[used++] = option;
  };
  if (order_.rootless)
    add(sys::kUserOverlay);
  else
    add(sys::kPlainOverlay);
  // The directory of the layers is free for this: their names have been looked up by the time it is
  // covered.
  bool at_once = ready.layers_at_once && count > 1;
  return at_once ? sys::mount_overlay_at_once(state::kLowers, options, used)
                 : sys::mount_filesystem("overlay", options, used, kQuiet);
}

// Nothing of it has a name: mount tables show paths within the layers and the disk, none of the host.
int RootBuilder::mount_overlay_of_descriptors(const ReadyStep& ready) const {
  size_t count = ready.step->lowers.size();
  sys::MountOption options[kMostLayers + 2 + std::size(sys::kPlainOverlay)];
  int used = 0;
  if (count > kMostLayers) return -E2BIG;
  for (size_t i = 0; i < count; ++i) {
    if (int status = map_ids(ready.sources[i]); status < 0) return status;
    options[used++] = {"lowerdir+", nullptr, ready.sources[i]};
  }
  int upper = check_call(::openat(disk_, ready.upper, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  int work = check_call(::openat(disk_, ready.work, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (upper < 0 || work < 0) return upper < 0 ? upper : work;
  options[used++] = {"upperdir", nullptr, upper};
  options[used++] = {"workdir", nullptr, work};
  for (const sys::MountOption& option : sys::kPlainOverlay) options[used++] = option;
  int mount = sys::mount_filesystem("overlay", options, used, kQuiet);
  ::close(upper);
  ::close(work);
  return mount;
}

int RootBuilder::overlay(const ReadyStep& ready) {
  if (ready.made == ReadyStep::Made::whole) return add_root(ready.sources[0], *ready.step);
  return add_root(disk_ >= 0 ? mount_overlay_of_descriptors(ready) : mount_overlay(ready), *ready.step);
}

// The first overlay is the new root, others lie in it.
int RootBuilder::add_root(int mount, const Step& step) {
  if (mount < 0) return mount;
  if (root_ >= 0) return place(mount, step.target.c_str(), Links::inside);
  root_ = mount;
  if (order_.runsc) return sys::attach_mount(mount, AT_FDCWD, kStageRoot);
  return sys::attach_mount(mount, AT_FDCWD, order_.nothing >= 0 ? "/" : state::kMount);
}

// A volume where runsc_config() says that it is. runsc mounts it at a directory that is there.
int RootBuilder::show_runsc(int mount, const char* target) {
  int point = open_mount_point(target, Links::inside);
  if (point < 0) return point;
  ::close(point);
  char at[32];
  std::snprintf(at, sizeof at, "%s/%d", kStageVolumes, volumes_used_++);
  int status = check_call(::mkdir(at, 0755));
  if (status == 0) status = sys::attach_mount(mount, AT_FDCWD, at);
  ::close(mount);
  return status;
}

int RootBuilder::bind(const ReadyStep& ready) {
  int mount = ready.sources[0];
  const char* target = ready.step->target.c_str();
  int status = 0;
  if (ready.made != ReadyStep::Made::whole) {
    bool writable = ready.step->access == Step::Access::read_write;
    status = map_ids(mount);
    if (status == 0) status = sys::restrict_mount(mount, writable ? kQuiet : kQuiet | MOUNT_ATTR_RDONLY);
  }
  if (status < 0) return status;
  if (order_.runsc && is_volume(*ready.step)) return show_runsc(mount, target);
  return place(mount, target, Links::inside);
}

int RootBuilder::sysfs(const ReadyStep& ready) const {
  const char* target = ready.step->target.c_str();
  if (ready.made == ReadyStep::Made::whole) return attach(ready.sources[0], target, Links::refused);
  bool given = ready.made == ReadyStep::Made::source;
  int source =
      given ? ready.sources[0] : sys::mount_filesystem("sysfs", nullptr, 0, kKernel | MOUNT_ATTR_RDONLY);
  if (source < 0) return source;
  int shown = make_sysfs_frame();
  int status = shown < 0 ? shown : attach(shown, target, Links::refused);
  if (status == 0) status = show_sysfs(source, shown);
  if (status == -EINVAL && !given) {
    // Kernels before 6.15 copy only what is attached somewhere. The directory of the layers is free again.
    status = sys::attach_mount(source, AT_FDCWD, state::kLowers);
    if (status == 0) status = show_sysfs(source, shown);
    if (status == 0) status = check_call(::umount2(state::kLowers, MNT_DETACH));
  }
  if (shown >= 0) ::close(shown);
  if (!given) ::close(source);
  return status;
}

// Everything through the descriptor of the new file system: no path of the image leads to what is opened.
int RootBuilder::devices(const ReadyStep& ready) {
  const char* target = ready.step->target.c_str();
  bool whole = ready.made == ReadyStep::Made::whole;
  int dev = whole ? ready.sources[0] : make_device_frame(order_.first_id);
  if (dev < 0) return dev;
  int status = attach(dev, target, Links::refused);
  if (status == 0 && !whole)
    status = fill_devices(dev, order_.first_id, order_.rootless ? Nodes::bound : Nodes::made);
  // What was made ahead of need has the usual size, and nothing in it yet.
  if (status == 0 && order_.shm_bytes > 0) status = sys::resize_tmpfs(dev, order_.shm_bytes);
  if (status == 0) null_ = open_null(dev);
  if (!whole) ::close(dev);
  return status < 0 ? status : null_ < 0 ? null_ : 0;
}

int RootBuilder::cover_of(bool directory) {
  if (!directory) return null_ < 0 ? null_ : sys::clone_mount(null_, "");
  if (empty_directory_ >= 0) return sys::clone_mount(empty_directory_, "");
  const sys::MountOption options[] = {{"mode", "0555"}, {"size", "4096"}, {"nr_inodes", "2"}};
  return sys::mount_filesystem("tmpfs", options, 3, kQuiet | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
}

// Whether the kernel keeps it from everybody in a sandbox: it belongs to the host's root, who is nobody in
// there, and has nothing for others. Without root ids say less.
bool RootBuilder::is_closed(const struct stat& info) const {
  return !order_.rootless && info.st_uid == 0 && info.st_gid == 0 && (info.st_mode & S_IRWXO) == 0;
}

// Covers by descriptor: what is looked at and what is covered are the same object.
int RootBuilder::mask(const char* target) {
  int at = open_in_root(target, O_PATH, Links::refused);
  if (at == -ENOENT) return 0;
  if (at < 0) return at;
  struct stat info{};
  int status = check_call(::fstat(at, &info));
  if (status == 0 && is_closed(info)) {
    ::close(at);
    return 0;
  }
  bool directory = S_ISDIR(info.st_mode);
  int cover = status < 0 ? status : cover_of(directory);
  status = cover < 0 ? cover : sys::attach_mount_to(cover, at);
  // Once it is attached, it can be copied on every kernel.
  if (status == 0 && directory && empty_directory_ < 0)
    empty_directory_ = cover;
  else if (cover >= 0)
    ::close(cover);
  ::close(at);
  return status;
}

int RootBuilder::read_only(const char* target) const {
  int at = open_in_root(target, O_PATH, Links::refused);
  if (at == -ENOENT) return 0;
  if (at < 0) return at;
  int copy = sys::clone_mount(at, "");
  int status = copy < 0 ? copy : sys::restrict_mount(copy, kQuiet | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
  if (status == 0) status = sys::attach_mount_to(copy, at);
  if (copy >= 0) ::close(copy);
  ::close(at);
  return status;
}

int RootBuilder::scratch(const char* target) const {
  char owner[16];
  std::snprintf(owner, sizeof owner, "%u", order_.first_id);
  const sys::MountOption options[] = {{"mode", "1777"}, {"size", "67108864"}, {"uid", owner}, {"gid", owner}};
  return place(sys::mount_filesystem("tmpfs", options, 4, kQuiet), target, Links::inside);
}

int RootBuilder::seal(const char* target) const {
  int at = open_in_root(target, O_PATH | O_DIRECTORY, Links::inside);
  if (at < 0) return at;
  int status = sys::seal_mount(at);
  ::close(at);
  return status;
}

int RootBuilder::show(const LimitView& view) const {
  int at = open_in_root(view.target, O_PATH, Links::refused);
  if (at == -ENOENT) return 0;
  if (at < 0) return at;
  int status = sys::restrict_mount(view.source, kQuiet | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
  if (status == 0) status = sys::attach_mount_to(view.source, at);
  ::close(at);
  return status;
}

// /sys/fs/cgroup with a directory per hierarchy, as hosts with version 1 have it.
int RootBuilder::cgroup_directory() const {
  constexpr char kTarget[] = "/sys/fs/cgroup";
  const sys::MountOption options[] = {{"mode", "0755"}, {"size", "4096"}, {"nr_inodes", "16"}};
  int mount = sys::mount_filesystem("tmpfs", options, 3, kQuiet | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return mount;
  int status = 0;
  for (size_t i = 0; i < order_.cgroup_name_count && status == 0; ++i)
    status = check_call(::mkdirat(mount, order_.cgroup_names[i], 0755));
  if (status == 0) status = sys::restrict_mount(mount, MOUNT_ATTR_RDONLY);
  if (status < 0) {
    ::close(mount);
    return status;
  }
  return place(mount, kTarget, Links::refused);
}

int RootBuilder::show_limits() const {
  int status = order_.cgroup_name_count > 0 ? cgroup_directory() : 0;
  for (size_t i = 0; i < order_.view_count && status == 0; ++i) status = show(order_.views[i]);
  return status;
}

int RootBuilder::run(const ReadyStep& ready) {
  const Step& step = *ready.step;
  const char* target = step.target.c_str();
  switch (step.kind) {
    case Step::Kind::overlay:
      return overlay(ready);
    case Step::Kind::bind:
    case Step::Kind::volume:
      return bind(ready);
    case Step::Kind::proc:
      return place(sys::mount_filesystem("proc", nullptr, 0, kKernel), target, Links::refused);
    case Step::Kind::sysfs:
      return sysfs(ready);
    case Step::Kind::devices:
      return devices(ready);
    case Step::Kind::mask:
      return mask(target);
    case Step::Kind::read_only:
      return read_only(target);
    case Step::Kind::hostname:
      return check_call(::sethostname(step.name.data(), step.name.size()));
    case Step::Kind::scratch:
      return scratch(target);
    case Step::Kind::seal:
      return seal(target);
    case Step::Kind::show_limits:
      return show_limits();
  }
  return -EINVAL;
}

}  // namespace osb::launcher
