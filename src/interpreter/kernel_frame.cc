#include "interpreter/kernel_frame.h"

namespace osb::interpreter {

std::string encode_frame(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 4);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(json.size() >> shift));
  out.append(json);
  return out;
}

Result<std::optional<std::string>> FrameReader::next() {
  std::string_view unread = std::string_view(buffer_).substr(at_);
  if (unread.size() >= 4) {
    size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(unread[i]);
    if (length > kMaxFrame) {
      return fail(Code::too_large, "a frame of " + std::to_string(length) + " bytes; at most " +
                                       std::to_string(kMaxFrame) + " are allowed");
    }
    if (unread.size() >= 4 + length) {
      at_ += 4 + length;
      return std::optional(std::string(unread.substr(4, length)));
    }
  }
  buffer_.erase(0, at_);
  at_ = 0;
  constexpr size_t kKeptCapacity = 64 * 1024;
  if (buffer_.empty() && buffer_.capacity() > kKeptCapacity) buffer_.shrink_to_fit();
  return std::optional<std::string>();
}

}  // namespace osb::interpreter
