#pragma once

// The combined output of a background command, addressed by byte offset. The first bytes stay in memory, a
// longer log moves to an unnamed file.

#include <optional>
#include <string>
#include <string_view>

#include "execd/temp_file.h"

namespace osb::execd {

class OutputLog {
 public:
  static constexpr size_t kMemoryLimit = 16 * 1024;

  // Bytes that can be stored nowhere (no disk space) are dropped; the log then ends there for good.
  void append(std::string_view bytes);
  uint64_t size() const { return file_ ? file_->size() : memory_.size(); }
  // At most `limit` bytes from `offset`; "" at or beyond the end.
  Result<std::string> read(uint64_t offset, size_t limit) const;
  size_t memory_bytes() const { return memory_.capacity(); }
  bool in_file() const { return file_.has_value(); }

 private:
  std::string memory_;
  std::optional<TempFile> file_;
  bool full_ = false;
};

}  // namespace osb::execd
