#pragma once

// The user namespace of a service without root: entered before anything else, its user 0 is whoever started
// the service. Ids beside that one exist where the system gave the user some (/etc/subuid) and has the
// programs that may map them (newuidmap, newgidmap); otherwise there is exactly one.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::sys {

struct IdRange {
  uint32_t first = 0, count = 0;
};

// The largest range that a text in the format of /etc/subuid gives to a user, named or by number. Count 0
// when there is none.
IdRange subordinate_ids(std::string_view text, std::string_view user, uint32_t id);

// Arguments of newuidmap and newgidmap behind the pid: 0 is `own`, and what follows comes from `range`, at
// most 65536 ids in all.
std::string map_arguments(uint32_t own, IdRange range);

// How many ids from 0 on are mapped in a text in the format of /proc/<pid>/uid_map.
uint32_t ids_from_zero(std::string_view map);

// Ids from 0 on that this process may use, for users and groups alike; at most 65536.
uint32_t mapped_ids();
// A map for a namespace below, with the same ids. Two lines: a line may not span ids that came from different
// ranges, and 0 is always one by itself.
std::string identity_map(uint32_t ids);
// Whether processes here may change their supplementary groups.
bool may_set_groups();

// Becomes user 0 of a fresh user namespace, with a mount namespace in it. The caller must be single-threaded.
// `user` is the caller's name, as /etc/subuid has it. Returns why only one id could be mapped; empty when
// more are.
Result<std::string> enter_user_namespace(const std::string& user);

// The same into an existing namespace, made by the same user: the one right below the caller's that a process
// is in, or in a descendant of.
Result<void> join_user_namespace_of(int pidfd);

// What forbids user namespaces here, and the remedy; for the error of a failed attempt.
struct UserNamespaceSwitches {
  std::string clone;     // /proc/sys/kernel/unprivileged_userns_clone; empty when there is none
  std::string most;      // /proc/sys/user/max_user_namespaces
  std::string apparmor;  // /proc/sys/kernel/apparmor_restrict_unprivileged_userns
  static UserNamespaceSwitches read();
};
std::string obstacle(const UserNamespaceSwitches& switches);

}  // namespace osb::sys
