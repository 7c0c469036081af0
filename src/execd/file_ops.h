#pragma once

// File operations of the API on resolved paths. All block; all act with the file-system identity of the
// calling thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::execd {

// A file or link; missing is success, a directory (or a link to one) is refused.
Result<void> remove_file(const std::string& path);
// Whatever is there, recursively; missing is success. Links are removed, not followed, also when somebody
// swaps a directory for one meanwhile.
Result<void> remove_tree(const std::string& path);
// Renames, or copies and removes across file systems. Never replaces: an existing destination is
// Code::already_exists. Missing parents of the destination are made.
Result<void> move_path(const std::string& from, const std::string& to);
// Copies a tree with modes, owners (as far as allowed), times and links. `to` must not exist.
Result<void> copy_tree(const std::string& from, const std::string& to);
// Replaces every occurrence in place (same inode). The count; the file is not touched when that is 0.
Result<uint64_t> replace_in_file(const std::string& path, std::string_view old_text,
                                 std::string_view new_text);

}  // namespace osb::execd
