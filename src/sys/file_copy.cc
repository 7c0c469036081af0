#include "sys/file_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace osb::sys {
namespace {

constexpr size_t kPiece = 1 << 20;

// For file systems between which the kernel does not copy by itself.
Result<void> copy_by_hand(int from, int to, off_t at, off_t end) {
  static std::string buffer(kPiece, '\0');  // one thread, one file at a time
  while (at < end) {
    size_t most = std::min(kPiece, static_cast<size_t>(end - at));
    ssize_t n = ::pread(from, buffer.data(), most, at);
    if (n < 0) return fail_errno("read");
    if (n == 0) return fail(Code::internal, "it became shorter while it was read");
    for (ssize_t done = 0; done < n;) {
      ssize_t written = ::pwrite(to, buffer.data() + done, static_cast<size_t>(n - done), at + done);
      if (written < 0) return fail_errno("write its copy");
      done += written;
    }
    at += n;
  }
  return {};
}

Result<void> copy_range(int from, int to, off_t at, off_t end) {
  off_t in = at, out = at;
  while (in < end) {
    ssize_t n = ::copy_file_range(from, &in, to, &out, static_cast<size_t>(end - in), 0);
    if (n > 0) continue;
    bool elsewhere = n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS);
    if (elsewhere || n == 0) return copy_by_hand(from, to, in, end);
    return fail_errno("write its copy");
  }
  return {};
}

}  // namespace

Result<void> copy_data(int from, int to, off_t size, blkcnt_t blocks) {
  if (size == 0) return {};
  if (::ioctl(to, FICLONE, from) == 0) return {};
  if (static_cast<off_t>(blocks) * 512 >= size) return copy_range(from, to, 0, size);
  for (off_t at = 0; at < size;) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return fail_errno("find its data");
    off_t end = ::lseek(from, data, SEEK_HOLE);
    if (end < 0) return fail_errno("find its holes");
    end = std::min(end, size);
    if (auto copied = copy_range(from, to, data, end); !copied) return copied;
    at = end;
  }
  if (::ftruncate(to, size) < 0) return fail_errno("set its size");
  return {};
}

Result<bool> same_data(int one, int other, off_t size) {
  static std::string a(kPiece, '\0'), b(kPiece, '\0');
  for (off_t at = 0; at < size;) {
    size_t most = std::min(kPiece, static_cast<size_t>(size - at));
    ssize_t n = ::pread(one, a.data(), most, at);
    ssize_t m = ::pread(other, b.data(), most, at);
    if (n < 0 || m < 0) return fail_errno("read");
    if (n != m || n == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(n)) != 0) return false;
    at += n;
  }
  return true;
}

}  // namespace osb::sys
