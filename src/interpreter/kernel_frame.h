#pragma once

// The frames between execd and a kernel: four bytes of length, big-endian, then JSON.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::interpreter {

inline constexpr size_t kMaxFrame = 64 << 20;

// Precondition: at most kMaxFrame bytes.
std::string encode_frame(std::string_view json);

// Puts frames together from the pieces in which they arrive. Holds at most one frame and one piece.
class FrameReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, if it is there. Code::too_large when the sender announces too much; nothing can be
  // read after that.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
  size_t at_ = 0;  // where the unread part begins
};

}  // namespace osb::interpreter
