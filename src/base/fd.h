#pragma once

// Fd owns a file descriptor; a plain int borrows one. Every descriptor of ours is born close-on-exec.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace osb {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// open(2) with O_CLOEXEC added. `path` may be relative to `dir`.
Result<Fd> open_at(int dir, const std::string& path, int flags, mode_t mode = 0);
// For paths that a sandbox may have written: openat2 that stays beneath `dir` and follows no symlink at all.
Result<Fd> open_beneath(int dir, const std::string& path, int flags, mode_t mode = 0);

// The whole file, at most `limit` bytes (Code::too_large beyond that).
Result<std::string> read_all(int fd, size_t limit = 1 << 20);
Result<std::string> read_file(const std::string& path, size_t limit = 1 << 20);
Result<void> write_all(int fd, std::string_view bytes);
// Opens, writes in one call, closes: for control files of the kernel (and for small files; `flags` adds
// O_CREAT etc.).
Result<void> write_file(const std::string& path, std::string_view bytes, int flags = 0, mode_t mode = 0644);
Result<void> write_file_at(int dir, const std::string& path, std::string_view bytes, int flags = 0,
                           mode_t mode = 0644);

}  // namespace osb
