#include "execd/replay_buffer.h"

#include <algorithm>

namespace osb::execd {

void ReplayBuffer::append(std::string_view bytes) {
  total_ += bytes.size();
  if (bytes.size() > kLimit) bytes.remove_prefix(bytes.size() - kLimit);
  data_.append(bytes);
  // Seldom, because moving a megabyte for every few bytes would be slow.
  if (data_.size() > kLimit + kLimit / 4) data_.erase(0, data_.size() - kLimit);
}

ReplayBuffer::Piece ReplayBuffer::since(uint64_t since) const {
  uint64_t from = std::clamp(since, oldest(), total_);
  return {from, data_.substr(data_.size() - static_cast<size_t>(total_ - from))};
}

}  // namespace osb::execd
