#include "base/frame.h"

namespace osb {

std::string encode_frame(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + 4);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(bytes.size() >> shift));
  out.append(bytes);
  return out;
}

Result<std::optional<std::string>> FrameReader::next() {
  std::string_view unread = std::string_view(buffer_).substr(at_);
  if (unread.size() >= 4) {
    size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(unread[i]);
    if (length > most_) {
      return fail(Code::too_large, "a frame of " + std::to_string(length) + " bytes; at most " +
                                       std::to_string(most_) + " are allowed");
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

}  // namespace osb
