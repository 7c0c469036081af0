#pragma once

// The combined output of a background command, addressed by byte offset. The first bytes stay in memory, a
// longer log moves to an unnamed file, of which the newest part is kept: a command that writes without end
// must not fill the disk. Offsets stay what they are when the oldest part goes.

#include <optional>
#include <string>
#include <string_view>

#include "execd/temp_file.h"

namespace osb::execd {

class OutputLog {
 public:
  static constexpr size_t kMemoryLimit = 16 * 1024;
  static constexpr uint64_t kMostKept = 64 << 20;  // and a few MiB more, which go together

  // Bytes that can be stored nowhere (no disk space) are dropped; the log then ends there for good.
  void append(std::string_view bytes);
  uint64_t first() const { return first_; }  // the offset of the oldest byte that is kept
  uint64_t size() const { return file_ ? file_->size() : memory_.size(); }
  uint64_t kept_bytes() const { return size() - first_; }
  // At most `limit` bytes from `offset`, or from the oldest byte when that is later; "" at or beyond the end.
  Result<std::string> read(uint64_t offset, size_t limit) const;
  size_t memory_bytes() const { return memory_.capacity(); }
  bool in_file() const { return file_.has_value(); }
  int file_descriptor() const { return file_ ? file_->fd() : -1; }

 private:
  std::string memory_;
  std::optional<TempFile> file_;
  uint64_t first_ = 0;
  bool full_ = false;
};

}  // namespace osb::execd
