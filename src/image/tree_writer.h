#pragma once

// Writes the entries of a hostile archive below one directory.
//
// The kernel keeps every path inside: parents are opened with openat2 and RESOLVE_IN_ROOT, so that a link of
// the archive leads to where it would lead in the finished root and nowhere else, and the last component is
// never followed. What comes later replaces what came before.

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace osb::image {

// What an entry has besides its content.
struct Attributes {
  mode_t mode = 0644;  // permission bits with set-id and sticky
  int64_t uid = 0, gid = 0;
  int64_t mtime = 0;
  long mtime_nsec = 0;
};

// The path of an entry as a list of plain names: "./a//b/" is "a/b", "/" is "". Code::invalid_argument for
// "..", names and paths that are too long.
Result<std::string> clean_entry_path(std::string_view path);

class TreeWriter {
 public:
  enum class Owners { set, ignore };  // ignore: for a caller who may not give files away
  // Borrows `root`.
  TreeWriter(int root, Owners owners) : root_(root), owners_(owners) {}

  // Paths are clean ones. An empty path is the root itself: only a directory may be written there.
  Result<void> directory(const std::string& path, const Attributes& attributes);
  Result<void> ensure_directory(const std::string& path);  // with ordinary attributes when it is missing
  Result<void> symlink(const std::string& path, const std::string& target, const Attributes& attributes);
  Result<void> hard_link(const std::string& path, const std::string& target);
  Result<void> fifo(const std::string& path, const Attributes& attributes);
  // An overlay's mark for "the layers below have this, and it is gone". False when this layer itself has a
  // directory of that name: then that directory hides what is below.
  Result<bool> whiteout(const std::string& path);

  // A file is open between these two.
  Result<Fd> create_file(const std::string& path, const Attributes& attributes);
  Result<void> finish_file(int fd, const Attributes& attributes);
  // On the file that is open, or on what has this path.
  Result<void> set_xattr(int fd, const std::string& name, std::string_view value) const;
  Result<Fd> open_for_xattr(const std::string& path) const;  // directories

  // Times and modes of directories, after everything is in them.
  Result<void> finish();

  // Paths of directories that took the place of a whiteout: they hide what the layers below have.
  const std::vector<std::string>& opaque() const { return opaque_; }

 private:
  struct Place {
    int parent = -1;
    std::string name;
  };
  Result<Place> place(const std::string& path);
  Result<int> parent_of(const std::string& path);
  // Takes away what has the name; a directory with everything in it. The place stays usable.
  Result<void> clear(const Place& place);
  Result<void> own(int dir, const char* name, const Attributes& attributes) const;

  Result<void> empty_trash();

  int root_;
  Owners owners_;
  // The directory that the last entry went to; most entries go to the same one.
  std::optional<std::string> cached_path_;
  Fd cached_;
  std::map<std::string, Attributes> directories_;  // what finish() has to set
  std::vector<std::string> opaque_;
  std::string trash_;  // name in the root of a directory for replaced directories; "" before the first
};

}  // namespace osb::image
