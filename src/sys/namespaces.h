#pragma once

// User and network namespaces as descriptors, made ahead of the sandbox that will use them.

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "sys/outlet.h"

namespace osb::sys {

// A user namespace that maps ids 0 .. count-1 inside to base .. base+count-1 outside, for users and groups.
// It belongs to user `base`, who is charged for what its users take of the kernel's pools. Needs root in the
// caller's namespace.
Result<Fd> create_user_namespace(uint32_t base, uint32_t count);
// The same with a map of several lines, as the kernel takes them; it belongs to the caller.
Result<Fd> create_user_namespace(const std::string& map);
// One for mounts whose ids are to be mapped, with a map for each; nobody ever is in it.
Result<Fd> create_id_map(const std::string& users, const std::string& groups);

// A network namespace whose only interface, lo, is up, is the way to everywhere (outlet.h), and in which
// every user may bind low ports. The caller must be single-threaded: it enters the new namespace for a moment
// and comes back to `home`. Without a `home`
// (-1), for callers who may not come back to it, a child does that.
enum class LoopbackRoute { none, everything };  // see outlet.h: what has no outlet must not be led to one
Result<Fd> create_network_namespace(int home, LoopbackRoute route = LoopbackRoute::none);

// Unconnected TCP sockets inside the network namespace of a process (or of a namespace descriptor).
// Single-threaded too, and `home` means the same.
Result<void> sockets_in_network(int pidfd, int home, Fd* sockets, int count);

// A fresh outlet in a network namespace, by a process in it or by its descriptor. Single-threaded too, and
// `home` means the same.
Result<Outlet> open_outlet(int network, int home, OutletFor what);

// What has happened in a network namespace, as text: equal texts of two namespaces mean that as much (or as
// little) was sent in them. Single-threaded too.
Result<std::string> network_counters(int network, int home);

// A detached, read-only sysfs that shows a network namespace. Single-threaded too.
Result<Fd> sysfs_of_network(int network, int home);

// A mount namespace in which there is one empty directory that nobody can write to, and nothing else. `place`
// is an empty directory, used for a moment and by nobody seen.
Result<Fd> create_empty_mount_namespace(const std::string& place);

// The caller's own network namespace.
Result<Fd> own_network_namespace();

}  // namespace osb::sys
