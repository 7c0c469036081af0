#pragma once

// COPY: which files of a tree go where in a sandbox, and the way there.

#include <optional>
#include <string>
#include <vector>

#include "cli/file_tree.h"

namespace osb::cli {

struct CopyItem {
  std::string from;  // in the tree
  std::string to;    // below the target
  TreeEntry::Kind kind = TreeEntry::Kind::file;
  unsigned mode = 0;
  uint64_t size = 0;
};

struct CopyPlan {
  std::vector<CopyItem> items;  // directories before what is in them
  // One file that becomes the target itself, unless that is a directory; else the target is one.
  bool is_single_file = false;
};

// Sources may have wildcards. Code::not_found names a source that is not there, or is hidden.
Task<Result<CopyPlan>> plan_copy(FileTree& tree, std::vector<std::string> sources);

// ADD: Code::unsupported for what it would unpack.
Result<void> refuse_archives(const CopyPlan& plan);

// Of everything that the copies would be: names, kinds, modes, contents.
Task<Result<std::string>> digest_of(FileTree& tree, const CopyPlan& plan);

struct CopyTarget {
  std::string path;  // absolute; a '/' at its end says that it is a directory
  uint32_t uid = 0, gid = 0;
  std::optional<unsigned> mode = {};  // of files and directories; absent: as they are
};
Task<Result<void>> copy_files(FileTree& tree, CopyPlan plan, CopyTarget target, Api& api,
                              std::string sandbox);

}  // namespace osb::cli
