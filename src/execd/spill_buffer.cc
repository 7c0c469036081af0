#include "execd/spill_buffer.h"

#include <algorithm>

namespace osb::execd {

Result<void> SpillBuffer::append(std::string_view bytes) {
  if (!held_.empty()) return fail(Code::exhausted, "no disk space for what waits already");
  // Order: as long as something waits in the file, everything new goes behind it.
  if (unread_in_file() == 0 && memory_.size() + bytes.size() <= memory_limit_) {
    memory_.append(bytes);
    return {};
  }
  if (!file_) file_ = TRY(TempFile::create());
  return file_->append(bytes);
}

void SpillBuffer::append_or_hold(std::string_view bytes) {
  if (held_.empty() && append(bytes)) return;
  held_.append(bytes);
}

Result<void> SpillBuffer::take(std::string& into) {
  into.clear();
  if (!memory_.empty()) {
    std::swap(into, memory_);
    return {};
  }
  uint64_t left = unread_in_file();
  if (left == 0) {
    std::swap(into, held_);
    return {};
  }
  into.resize(static_cast<size_t>(std::min<uint64_t>(left, kPiece)));
  size_t n = TRY(file_->read_at(read_, into.data(), into.size()));
  if (n != into.size()) return fail(Code::corrupt, "a temporary file lost its end");
  read_ += n;
  if (unread_in_file() == 0) {
    file_->truncate();
    read_ = file_->size();  // 0, unless truncating failed
  } else {
    file_->discard_before(read_);
  }
  return {};
}

void SpillBuffer::clear() {
  memory_ = {};
  held_ = {};
  file_.reset();
  read_ = 0;
}

}  // namespace osb::execd
