#include "execd/output_log.h"

#include <algorithm>

#include "base/log.h"

namespace osb::execd {

void OutputLog::append(std::string_view bytes) {
  if (full_) return;
  if (!file_ && memory_.size() + bytes.size() <= kMemoryLimit) {
    memory_.append(bytes);
    return;
  }
  auto spill = [&]() -> Result<void> {
    if (!file_) {
      TempFile file = TRY(TempFile::create());
      TRY(file.append(memory_));
      file_ = std::move(file);
      memory_ = {};
    }
    TRY(file_->append(bytes));
    if (kept_bytes() <= kMostKept) return {};
    // Where the oldest part cannot be given back, the newest cannot be taken.
    if (!file_->discard_before(size() - kMostKept)) return fail_errno("give the oldest output back");
    first_ = size() - kMostKept;
    return {};
  };
  if (auto done = spill(); !done) {
    full_ = true;
    log::warn("a command's log ends early", {{"reason", done.error().message}});
  }
}

Result<std::string> OutputLog::read(uint64_t offset, size_t limit) const {
  offset = std::max(offset, first_);
  if (offset >= size()) return std::string();
  size_t n = static_cast<size_t>(std::min<uint64_t>(size() - offset, limit));
  if (!file_) return memory_.substr(static_cast<size_t>(offset), n);
  std::string out(n, '\0');
  out.resize(TRY(file_->read_at(offset, out.data(), n)));
  return out;
}

}  // namespace osb::execd
