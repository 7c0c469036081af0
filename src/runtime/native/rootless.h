#pragma once

// The service without root: what it does first, and what it lacks.
//
// opensandbox-server, started by an ordinary user, enters a user namespace whose root is that user and goes
// on as if it were root. Sandboxes outlive the service, and with them that namespace: a later start enters
// the same one again, found through any sandbox that lives, because only from there can it reach their
// networks.

#include <string>
#include <string_view>

#include "base/error.h"
#include "runtime/runtime.h"

namespace osb::runtime {

// Refuses a state directory in which an ordinary user's service was: its sandboxes may live on in a namespace
// that root's service would not look for.
Result<void> check_not_rootless(const std::string& state_dir);

// `given` is the state directory as it was written, before it was resolved. Returns as user 0 of the
// namespace. Code::permission_denied with the remedy where the system forbids it.
Result<void> enter_rootless(const std::string& state_dir, const std::string& given);

// What is true of this process's namespaces, for the tier.
struct RootlessFacts {
  uint32_t ids = 1;
  bool sets_groups = false;
  // Of control groups that were delegated to the service's user.
  bool freezes = false, limits_cpu = false, limits_memory = false, limits_pids = false;
  // `abilities` is what the launcher says about its groups.
  static RootlessFacts read(std::string_view abilities);
};
Isolation rootless_isolation(const RootlessFacts& facts);

}  // namespace osb::runtime
