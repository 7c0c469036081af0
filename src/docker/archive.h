#pragma once

// Files as an archive that an engine unpacks (tar, "ustar"): root's, of any time.

#include <string>
#include <string_view>
#include <vector>

namespace osb::docker {

struct ArchiveFile {
  std::string_view name;  // at most 100 bytes
  unsigned mode = 0644;
  std::string_view bytes;
};

std::string archive_of(const std::vector<ArchiveFile>& files);

}  // namespace osb::docker
