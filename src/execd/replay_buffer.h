#pragma once

// The last output of a terminal, by absolute offset: what a client that comes back has missed. Grows with
// what there is.

#include <cstdint>
#include <string>
#include <string_view>

namespace osb::execd {

class ReplayBuffer {
 public:
  static constexpr size_t kLimit = 1 << 20;

  void append(std::string_view bytes);
  uint64_t total() const { return total_; }  // bytes ever appended
  uint64_t oldest() const { return total_ - kept(); }

  struct Piece {
    uint64_t offset = 0;
    std::string bytes;
  };
  // Everything from `since`, or from the oldest byte that is left; empty at or beyond the end.
  Piece since(uint64_t since) const;

 private:
  size_t kept() const { return data_.size() < kLimit ? data_.size() : kLimit; }
  std::string data_;  // its last kLimit bytes count
  uint64_t total_ = 0;
};

}  // namespace osb::execd
