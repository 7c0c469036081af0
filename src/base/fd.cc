#include "base/fd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace osb {

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Fd> open_at(int dir, const std::string& path, int flags, mode_t mode) {
  int fd = ::openat(dir, path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return fail_errno("open " + path);
  return Fd(fd);
}

Result<Fd> open_beneath(int dir, const std::string& path, int flags, mode_t mode) {
  struct open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  bool creates =
      (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;  // O_TMPFILE contains O_DIRECTORY
  how.mode = creates ? mode : 0;                                   // else the kernel refuses a mode
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
  if (fd < 0) return fail_errno("open " + path);
  return Fd(static_cast<int>(fd));
}

Result<std::string> read_all(int fd, size_t limit) {
  std::string out;
  char piece[4096];  // most files are shorter, and a daemon's heap keeps the pages that a larger one touched
  while (true) {
    ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read");
    if (n == 0) return out;
    out.append(piece, static_cast<size_t>(n));
    if (out.size() > limit) return fail(Code::too_large, "more than " + std::to_string(limit) + " bytes");
  }
}

Result<std::string> read_file(const std::string& path, size_t limit) {
  Fd fd = TRY(open_at(AT_FDCWD, path, O_RDONLY));
  return in_context(path, read_all(fd.get(), limit));
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<void> write_file_at(int dir, const std::string& path, std::string_view bytes, int flags, mode_t mode) {
  Fd fd = TRY(open_at(dir, path, O_WRONLY | flags, mode));
  return in_context(path, write_all(fd.get(), bytes));
}

Result<void> write_file(const std::string& path, std::string_view bytes, int flags, mode_t mode) {
  return write_file_at(AT_FDCWD, path, bytes, flags, mode);
}

}  // namespace osb
