#pragma once

// What the file routes say about a file, and the permission objects they take.

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "execd/users.h"
#include "json/decode.h"

namespace osb::execd {

// {"path","type","size","modified_at","created_at","owner","group","mode"}
void append_file_info(std::string& out, const std::string& path, const struct stat& info, const Users& users);

// {owner, group, mode} of uploads, chmod and mkdir. Modes travel as octal digits in a decimal number: 0644 is
// 644.
struct Permission {
  std::string owner, group;  // names, or decimal ids; "" leaves it
  int64_t mode = 0;          // 0 leaves it
  bool empty() const { return owner.empty() && group.empty() && mode == 0; }
};
Permission decode_permission(const json::Field& field);

// 644 -> 0644. Nothing for digits above 7 and negative numbers; values above 777 keep their last three
// digits.
std::optional<mode_t> mode_from_digits(int64_t digits);
int64_t digits_from_mode(mode_t mode);

// Follows symlinks. The owner is changed before the mode, because changing it clears set-id bits.
Result<void> apply_permission(const std::string& path, const Permission& permission);

}  // namespace osb::execd
