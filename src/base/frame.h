#pragma once

// Frames on a stream: four bytes of length, big-endian, then so many bytes. Between server and execd, and
// between execd and the kernels of code contexts.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb {

// Precondition: less than 4 GiB.
std::string encode_frame(std::string_view bytes);

// Puts frames together from the pieces in which they arrive. Holds at most one frame and one piece.
class FrameReader {
 public:
  explicit FrameReader(size_t most) : most_(most) {}
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, if it is there. Code::too_large when the sender announces too much; nothing can be
  // read after that.
  Result<std::optional<std::string>> next();
  bool has_bytes() const { return at_ < buffer_.size(); }

 private:
  size_t most_;
  std::string buffer_;
  size_t at_ = 0;  // where the unread part begins
};

}  // namespace osb
