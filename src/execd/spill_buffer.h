#pragma once

// A queue of bytes with bounded memory: what does not fit goes to an unnamed file until the reader has caught
// up. Lets a command run at its own speed whatever its reader does, and loses nothing. When the disk is full,
// it can hold some more and says so.

#include <optional>
#include <string>
#include <string_view>

#include "execd/temp_file.h"

namespace osb::execd {

class SpillBuffer {
 public:
  explicit SpillBuffer(size_t memory_limit) : memory_limit_(memory_limit) {}

  // Fails only when the file can be neither made nor written; nothing was taken then.
  Result<void> append(std::string_view bytes);
  // Never fails: what the file does not take (no disk space) is held in memory. As long as something is held,
  // the caller should not come with more.
  void append_or_hold(std::string_view bytes);
  bool strained() const { return !held_.empty(); }
  bool empty() const { return memory_.empty() && unread_in_file() == 0 && held_.empty(); }
  // Replaces `into` with the next bytes: all that is in memory, or a piece of the file.
  Result<void> take(std::string& into);
  void clear();

 private:
  static constexpr size_t kPiece = 256 * 1024;
  uint64_t unread_in_file() const { return file_ ? file_->size() - read_ : 0; }

  size_t memory_limit_;
  std::string memory_;  // older than everything in the file
  std::optional<TempFile> file_;
  uint64_t read_ = 0;  // how much of the file was taken
  std::string held_;   // newer than everything in the file
};

}  // namespace osb::execd
