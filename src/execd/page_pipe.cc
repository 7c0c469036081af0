#include "execd/page_pipe.h"

#include <fcntl.h>

namespace osb::execd {

Result<void> PagePipe::fill(int file, uint64_t offset, size_t limit) {
  size = 0;
  if (!pipe_.write.valid()) {
    auto made = io::Pipe::create();
    if (!made) return fail(Code::unsupported, "no pipe for a download");
    pipe_ = std::move(*made);
  }
  while (size < limit) {
    off_t at = static_cast<off_t>(offset + size);
    ssize_t n = ::splice(file, &at, pipe_.write.get(), nullptr, limit - size, SPLICE_F_NONBLOCK);
    if (n > 0) {
      size += static_cast<size_t>(n);
      continue;
    }
    if (n == 0 || (errno == EAGAIN && size > 0)) return {};  // the end of the file, or of the room
    if (errno == EINTR) continue;
    if (errno == EINVAL && size == 0) return fail(Code::unsupported, "splice");
    return fail_errno("splice");
  }
  return {};
}

}  // namespace osb::execd
