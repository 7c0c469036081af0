#include "docker/exec_frames.h"

#include <algorithm>
#include <cstring>

#include "base/shown.h"
#include "base/strings.h"

namespace osb::docker {
namespace {

constexpr size_t kHead = 8;
constexpr unsigned char kOutput = 1, kWords = 2;
constexpr size_t kMostWords = 256;

std::unexpected<Error> odd(std::string what) {
  return fail(Code::corrupt, "an odd stream of the engine: " + std::move(what));
}

}  // namespace

void ExecFrames::feed(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_.append(bytes);
}

// False: it is not here yet.
Result<bool> ExecFrames::read_head() {
  std::string_view head = std::string_view(buffer_).substr(at_);
  if (head.size() < kHead) return false;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(head[i]); };
  bool padded = byte(1) == 0 && byte(2) == 0 && byte(3) == 0;
  if (!padded || (byte(0) != kOutput && byte(0) != kWords)) return odd("a frame of no stream");
  aside_ = byte(0) == kWords;
  left_ = static_cast<uint32_t>(byte(4)) << 24 | static_cast<uint32_t>(byte(5)) << 16 |
          static_cast<uint32_t>(byte(6)) << 8 | byte(7);
  if (aside_ && left_ > kMostWords) return odd("too many words");
  at_ += kHead;
  return true;
}

Result<void> ExecFrames::hear(std::string_view words) {
  words_.append(words);
  if (total_ || words_.size() > kMostWords) return odd("too many words");
  size_t end = words_.find('\n');
  if (end == words_.npos) return {};
  if (end + 1 == words_.size()) total_ = parse_number<uint64_t>(std::string_view(words_).substr(0, end));
  if (!total_) return odd(shown(words_));
  if (taken_ > *total_) return odd("more than was sent");
  return {};
}

Result<size_t> ExecFrames::take(std::span<char> into) {
  while (true) {
    if (left_ == 0) {
      if (!TRY(read_head())) return 0;
      continue;
    }
    size_t here = std::min<size_t>(left_, buffer_.size() - at_);
    if (!aside_) here = std::min(here, into.size());
    if (here == 0) return 0;
    if (!aside_ && total_) here = std::min<uint64_t>(here, *total_ - taken_);
    if (here == 0) return odd("more than was sent");
    std::string_view piece = std::string_view(buffer_).substr(at_, here);
    at_ += here;
    left_ -= static_cast<uint32_t>(here);
    if (aside_) {
      TRY(hear(piece));
      continue;
    }
    taken_ += here;
    std::memcpy(into.data(), piece.data(), here);
    return here;
  }
}

}  // namespace osb::docker
