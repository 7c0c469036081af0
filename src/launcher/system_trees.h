#pragma once

// /sys and /dev of a sandbox: small file systems of its own with other mounts in them.
//
// Where the kernel mounts onto what is attached nowhere (Linux 6.15) the launcher makes them ahead of need,
// and a new process only attaches them. Elsewhere it makes them itself. Either way each serves one sandbox:
// locks and watches on a shared one would be a place to meet.
//
// These functions run between clone and exec too: no allocation, errors are negative errno values.

#include <cstdint>

namespace osb::launcher {

// What of `sysfs` (a descriptor of its root) a sandbox sees, detached.
int make_sysfs_tree(int sysfs);
// The same in two halves, for kernels that want the first one attached before the second.
int make_sysfs_frame();
int show_sysfs(int sysfs, int frame);

// How large /dev, with /dev/shm in it, may become unless a plan says otherwise. It is memory, and counted as
// such.
inline constexpr int64_t kStandardShm = int64_t{1} << 30;
// Device nodes, terminals, /dev/shm, detached. `first_id`: what uid and gid 0 of the sandbox are outside.
int make_device_tree(uint32_t first_id);
// The same in two halves.
int make_device_frame(uint32_t first_id);
enum class Nodes { made, bound };  // bound: the host's own, where making some is not allowed
int fill_devices(int dev, uint32_t first_id, Nodes nodes);  // with a umask of 0

// The null device of such a tree. Verified: whatever is wrong with it, nothing else ever becomes a descriptor
// of execd.
int open_null(int dev);

}  // namespace osb::launcher
