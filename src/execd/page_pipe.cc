#include "execd/page_pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace osb::execd {

Result<void> PagePipe::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return fail(Code::unsupported, "no pipe for a download");
  reader_ = Fd(ends[0]);
  writer_ = Fd(ends[1]);
  // Where the user has many large pipes already it stays small, which costs more turns and nothing else.
  ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kCapacity));
  return {};
}

Result<void> PagePipe::fill(int file, uint64_t offset, size_t limit) {
  size = 0;
  if (!writer_.valid()) TRY(open());
  while (size < limit) {
    off_t at = static_cast<off_t>(offset + size);
    ssize_t n = ::splice(file, &at, writer_.get(), nullptr, limit - size, SPLICE_F_NONBLOCK);
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
