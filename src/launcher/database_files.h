#pragma once

// The server's database when the service's user has changed: its directory belongs to the new user already,
// its files to the old one, and the new server could not write them.

#include <sys/types.h>

#include "base/error.h"

namespace osb::launcher {

// Gives what the server keeps in `directory` to the service's user: plain files, and what belongs to
// containers in directories of their own. The former user could have put anything there: links are not
// followed, and a file that has another name elsewhere stays whose it is.
Result<void> own_database_files(int directory, uid_t uid, gid_t gid);
// The sockets of sandboxes that run, in a directory where only root writes.
Result<void> own_sockets(int directory, gid_t gid);

}  // namespace osb::launcher
