#pragma once

// Mounts through the descriptor-based mount API: a mount is made detached, shaped, and only then attached, so
// that nothing half-made is ever visible and no path is looked up twice.
//
// These functions run between clone and exec: no allocation, no exceptions, errors are negative errno values.

#include <cstddef>
#include <cstdint>

namespace osb::sys {

// A detached copy of the mount at `path` (relative to `dir`), without its submounts, that neither passes
// mounts on nor receives any. The descriptor, or -errno.
int clone_mount(int dir, const char* path);

// Maps the ids of a detached mount through a user namespace. Overlay and proc cannot be idmapped (EINVAL).
int idmap_mount(int mount, int user_namespace);

// Turns MOUNT_ATTR_* flags on, for `mount` and everything below it. 0 or -errno.
int restrict_mount(int mount, uint64_t attributes);

// Makes one attached mount read-only, given an open directory at its root; what lies below stays as it is. 0
// or -errno.
int seal_mount(int root);

// One option of a file system to be mounted.
struct MountOption {
  const char* key;
  const char* value;    // null: a flag, or
  int descriptor = -1;  // an open directory
};

// For every overlay of ours: its upper stays what it looks like, a plain diff, and nobody waits for the disk.
inline constexpr MountOption kPlainOverlay[] = {
    {"volatile", nullptr}, {"redirect_dir", "off"}, {"metacopy", "off"}, {"index", "off"}};
// The same without root. Attributes of a user lead nowhere: the kernel refuses to follow them ("off" would).
inline constexpr MountOption kUserOverlay[] = {{"volatile", nullptr},
                                               {"redirect_dir", "nofollow"},
                                               {"metacopy", "off"},
                                               {"index", "off"},
                                               {"userxattr", nullptr}};

// A detached mount of a new file system instance, or -errno.
int mount_filesystem(const char* type, const MountOption* options, int count, uint64_t attributes);

// Whether overlays take their layers one by one ("lowerdir+"; Linux 6.7). Asked of the kernel once.
bool overlay_takes_single_layers();

// mount_filesystem for an overlay where they do not: the option "lowerdir+" stands for the next layer all the
// same. For a moment the new file system is attached at `scratch`, an existing directory of a private mount
// namespace.
int mount_overlay_at_once(const char* scratch, const MountOption* options, int count);
// The text of its options as mount(2) wants it; -E2BIG when it needs more than `size` bytes.
int overlay_options_text(const MountOption* options, int count, char* text, size_t size);

// Gives a tmpfs, by an open directory at its root, another size. 0 or -errno; EINVAL when it holds more.
int resize_tmpfs(int root, int64_t bytes);

// Forgets what is cached of the names in a file system that nobody uses at the moment. 0 or -errno.
int forget_cached(int mount);

// Attaches a detached mount at `path` relative to `dir`; the last component may not be a symlink. 0 or
// -errno.
int attach_mount(int mount, int dir, const char* path);

// The same onto a directory (or file) that is already open.
int attach_mount_to(int mount, int target);

}  // namespace osb::sys
