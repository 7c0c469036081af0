#pragma once

// Whose the files of a volume are, on both sides of it.
//
// Sandboxes have ranges of ids of their own, and another one each time. So what lies in a volume belongs to
// ids that no sandbox has, and the mount shows these to each sandbox as its 0 to 65535. On the host they are
// numbers without a name and without rights: nothing that a sandbox leaves there, a set-user-id program say,
// is anybody's who matters.
//
// In a directory of the host the sandbox's root acts as the owner of that directory, and so can do there what
// its owner and its group could and nothing else. Where that is the host's root, or root's group, it is so
// only in a sandbox that can give no file a privilege (sys/file_privileges.h); what is only read is shown
// without.

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "launcher/settings.h"

namespace osb::launcher {

// Lines as a user namespace takes them: ids of files, ids of the sandbox, how many.
struct IdMaps {
  std::string users, groups;
};

IdMaps volume_maps(uint32_t first_id);
// Whether the sandbox's root is the host's, where these are.
enum class HostRoot { nobody, owner };
IdMaps owner_maps(uint32_t first_id, uid_t uid, gid_t gid, HostRoot root);

// Whether a directory is root's or of root's group.
bool is_roots(const struct stat& directory);

// Who makes a directory that is missing in one that has this owner and mode.
struct Maker {
  uid_t uid = 0;
  gid_t gid = 0;
  // Nobody but root can make one there: it is made by root and given away.
  bool by_root = false;
};
Maker maker_in(const struct stat& directory);

}  // namespace osb::launcher
