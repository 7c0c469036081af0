#pragma once

// A directory tree in order: entries of a directory by name, each directory followed by what is in it. Links
// are seen, never followed. What vanishes or cannot be read on the way is skipped. Works piece by piece, so
// that a huge tree needs memory only for the directories on the way down.

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace osb::execd {

class TreeWalk {
 public:
  // `depth`: how many levels below the root, 0 for none. Fails when the root cannot be opened as a directory.
  static Result<TreeWalk> open(const std::string& root, int64_t depth);

  // One entry and nothing below it.
  static TreeWalk single(const std::string& path, const struct stat& info);

  struct Entry {
    std::string path;
    std::string_view name;  // the end of `path`
    struct stat info;
  };
  // Null at the end. The entry is valid until the next call.
  const Entry* next();

 private:
  struct Level {
    Fd dir;
    std::string path;  // without a trailing slash
    std::vector<std::string> names;
    size_t at = 0;
  };
  bool descend(Fd dir, std::string path);

  std::vector<Level> levels_;
  int64_t depth_ = 0;
  bool single_ = false;  // entry_ is yet to be handed out
  Entry entry_{};
};

}  // namespace osb::execd
