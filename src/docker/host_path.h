#pragma once

// Directories and files of the host that containers are given: directories of the operator's allow-list and
// what lies below.
//
// An engine is told a name and looks it up by itself, later, and follows links. So what was looked at is
// remembered, and execd says from inside what it was that the engine mounted, before anything else runs
// there.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace osb::docker {

struct FileId {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};
// As execd tells it (execd/container.h).
std::string to_line(const FileId& id);
// What is wrong when execd's lines are not those that were expected.
std::string why_not_shown(std::string_view seen, std::string_view wanted);

enum class Missing { told, made };  // with this process's rights

// Looked up one name at a time; a link counts when what it leads to is on the list. Code::permission_denied:
// not on the list, or part of the service's own files; Code::invalid_argument: a link that leads elsewhere or
// something that is neither a directory nor a file is on the way; Code::not_found: it is not there, and
// cannot be made if it was to be.
Result<FileId> look_up_host_path(const std::vector<std::string>& allowed, const std::string& state_dir,
                                 const std::string& path, Missing missing = Missing::made);

}  // namespace osb::docker
