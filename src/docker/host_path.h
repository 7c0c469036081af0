#pragma once

// Directories of the host that containers are given: those of the operator's allow-list and what lies below.
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

// Looked up one name at a time, without following links below the allow-list. A missing directory is made,
// with this process's rights. Code::permission_denied: not on the list, or part of the service's own files;
// Code::invalid_argument: a link or a file is on the way; Code::not_found: it cannot be made either.
Result<FileId> look_up_host_path(const std::vector<std::string>& allowed, const std::string& state_dir,
                                 const std::string& path);

}  // namespace osb::docker
