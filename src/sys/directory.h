#pragma once

// Directories: what is in them, and making ones that are ours.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace osb::sys {

// What is in a directory, without "." and "..", in no order.
Result<std::vector<std::string>> names_in(int dir);
Result<std::vector<std::string>> names_in(const std::string& path);
// Only the directories: of a control group, those below it.
Result<std::vector<std::string>> directories_in(const std::string& path);

// Whether there is nothing in it. Moves its offset.
Result<bool> is_empty_directory(int dir);

// With this mode and owner also when it was there: a changed service user or umask is put right, not reported
// as a mystery.
Result<void> ensure_directory(const std::string& path, mode_t mode, uid_t uid, gid_t gid);

// Tells ext4 to put each directory made in here into another part of the disk. It does not hand out an inode
// again for some seconds after its removal, and looks past all of those on every allocation: with many
// short-lived directories in one part that search costs more than everything else. Other file systems have no
// such flag; that is fine.
void spread_subdirectories(int dir);

}  // namespace osb::sys
