#pragma once

// Copies a tree of files that somebody else shaped: what `cp -a` does, by descriptor and one name at a time,
// so that no link is ever followed. Owners, modes, times, extended attributes, hard links, holes, the
// overlay's whiteouts (character devices 0:0), pipes and sockets are kept; data is shared where the file
// system can (FICLONE). Any other device is refused: no sandbox can make one.
//
// The tree must not change meanwhile. Rights are the caller's: see launcher/confined.h.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/sha256.h"

namespace osb::sys {

// Deeper directories cannot be reached by a path, and each level takes two descriptors.
inline constexpr size_t kMostDepth = 2000;

struct CopiedTree {
  uint64_t bytes = 0, entries = 0;
  // Of names, kinds, owners, modes, sizes, times, attributes, links and marks of everything in it, in
  // whatever order it was read. Not of the bytes in files: trees of the same digest are still to be compared.
  Sha256Digest digest{};
};

// Whether each directory of `from` hides what lies below it, marking its copy in `to` likewise. Asked of
// whoever may read the overlay's own attributes.
using CopyMarks =
    std::function<Result<std::vector<bool>>(const std::vector<int>& from, const std::vector<int>& to)>;
inline constexpr size_t kMostMarks = 8;  // asked for at a time

// Both are directories; `to` is empty.
Result<CopiedTree> copy_tree(int from, int to, const CopyMarks& marks);

// Whether both hold the same files with the same bytes. Attributes are not looked at: the digests of their
// copies have them.
Result<bool> same_files(int one, int other);

}  // namespace osb::sys
