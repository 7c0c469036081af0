#pragma once

// The files of an image archive, whether they lie in a directory or in a tar archive, which is never
// unpacked: its members are read where they are.

#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "image/layer_stream.h"

namespace osb::image {

struct Member {
  uint64_t offset = 0, size = 0;
  std::string link;  // a symlink's target, within the archive
};
using Members = std::map<std::string, Member>;

class ArchiveFiles {
 public:
  static ArchiveFiles of_directory(Fd directory) { return ArchiveFiles(std::move(directory), {}, true); }
  // Members that do not lie within the file are dropped.
  static Result<ArchiveFiles> of_archive(Fd file, Members members);

  // Code::not_found. Only ordinary files; symlinks of an archive within the archive.
  Result<ByteRange> find(const std::string& name);
  bool has(const std::string& name) { return find(name).has_value(); }
  // The whole of a small one.
  Result<std::string> read(const std::string& name, size_t limit = 4 << 20);

 private:
  ArchiveFiles(Fd base, Members members, bool directory)
      : base_(std::move(base)), members_(std::move(members)), is_directory_(directory) {}

  Fd base_;
  Members members_;
  bool is_directory_;
  std::map<std::string, std::pair<Fd, uint64_t>> opened_;  // files of a directory, with their sizes
};

}  // namespace osb::image
