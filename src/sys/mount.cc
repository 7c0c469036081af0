#include "sys/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace osb::sys {

int clone_mount(int dir, const char* path) {
  int copy = check_call(
      ::open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
  if (copy < 0) return copy;
  // Where the host's mounts are shared (service managers do that) a copy is one of their peers: what is
  // mounted on it in a sandbox would appear on the host, and the other way round.
  struct mount_attr attr{};
  attr.propagation = MS_PRIVATE;
  int status = check_call(::mount_setattr(copy, "", AT_EMPTY_PATH, &attr, sizeof attr));
  if (status == 0) return copy;
  ::close(copy);
  return status;
}

int idmap_mount(int mount, int user_namespace) {
  struct mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_IDMAP;
  attr.userns_fd = static_cast<uint64_t>(user_namespace);
  return check_call(::mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof attr));
}

int restrict_mount(int mount, uint64_t attributes) {
  struct mount_attr attr{};
  attr.attr_set = attributes;
  return check_call(::mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr));
}

int seal_mount(int root) {
  struct mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY;
  return check_call(::mount_setattr(root, "", AT_EMPTY_PATH, &attr, sizeof attr));
}

int mount_filesystem(const char* type, const MountOption* options, int count, uint64_t attributes) {
  int context = check_call(::fsopen(type, FSOPEN_CLOEXEC));
  if (context < 0) return context;
  int status = 0;
  for (int i = 0; i < count && status == 0; ++i) {
    const MountOption& option = options[i];
    unsigned command = option.value             ? FSCONFIG_SET_STRING
                       : option.descriptor >= 0 ? FSCONFIG_SET_FD
                                                : FSCONFIG_SET_FLAG;
    status = check_call(::fsconfig(context, command, option.key, option.value,
                                   command == FSCONFIG_SET_FD ? option.descriptor : 0));
  }
  if (status == 0) status = check_call(::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
  if (status == 0)
    status = check_call(::fsmount(context, FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes)));
  ::close(context);
  return status;
}

bool overlay_takes_single_layers() {
  static const bool kTakes = [] {
    int context = ::fsopen("overlay", FSOPEN_CLOEXEC);
    if (context < 0) return false;
    // Kernels before 6.5 collect any option and look at it only when the file system is made.
    bool collects = ::fsconfig(context, FSCONFIG_SET_FLAG, "no-such-option", nullptr, 0) == 0;
    bool takes = !collects && ::fsconfig(context, FSCONFIG_SET_STRING, "lowerdir+", "/", 0) == 0;
    ::close(context);
    return takes;
  }();
  return kTakes;
}

int overlay_options_text(const MountOption* options, int count, char* text, size_t size) {
  size_t used = 0;
  auto append = [&](const char* part) {
    for (; *part; ++part, ++used) {
      if (used < size) text[used] = *part;
    }
  };
  bool after_layer = false;
  for (int i = 0; i < count; ++i) {
    bool is_layer = std::strcmp(options[i].key, "lowerdir+") == 0;
    if (is_layer && after_layer) {
      append(":");
    } else {
      append(i > 0 ? "," : "");
      append(is_layer ? "lowerdir" : options[i].key);
      append(options[i].value ? "=" : "");
    }
    append(options[i].value ? options[i].value : "");
    after_layer = is_layer;
  }
  if (used >= size) return -E2BIG;
  text[used] = '\0';
  return 0;
}

int mount_overlay_at_once(const char* scratch, const MountOption* options, int count) {
  char text[4096];  // what the kernel copies at most
  int status = overlay_options_text(options, count, text, sizeof text);
  if (status < 0) return status;
  status = check_call(::mount("overlay", scratch, "overlay", MS_NOSUID | MS_NODEV, text));
  if (status < 0) return status;
  int copy = clone_mount(AT_FDCWD, scratch);
  status = check_call(::umount2(scratch, MNT_DETACH));
  if (status == 0 || copy < 0) return copy;
  ::close(copy);
  return status;
}

int resize_tmpfs(int root, int64_t bytes) {
  char size[24];
  std::snprintf(size, sizeof size, "%lld", static_cast<long long>(bytes));
  int context = check_call(::fspick(root, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
  if (context < 0) return context;
  int status = check_call(::fsconfig(context, FSCONFIG_SET_STRING, "size", size, 0));
  if (status == 0) status = check_call(::fsconfig(context, FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0));
  ::close(context);
  return status;
}

int forget_cached(int mount) {
  int context = check_call(::fspick(mount, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
  if (context < 0) return context;
  // A reconfiguration that changes nothing: the kernel drops unused entries before each.
  int status = check_call(::fsconfig(context, FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0));
  ::close(context);
  return status;
}

int attach_mount(int mount, int dir, const char* path) {
  return check_call(::move_mount(mount, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH));
}

int attach_mount_to(int mount, int target) {
  return check_call(::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

}  // namespace osb::sys
