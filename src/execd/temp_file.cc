#include "execd/temp_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace osb::execd {
namespace {

constexpr uint64_t kMemoryLimit =
    72 << 20;  // a whole log (output_log.h), and what comes before it is discarded

Fd unnamed_file_in(const std::string& dir) {
  Fd fd(::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  // Some file systems have no unnamed files.
  std::string name = dir + "/.execd-XXXXXX";
  fd = Fd(::mkostemp(name.data(), O_CLOEXEC));
  if (fd.valid()) ::unlink(name.c_str());
  return fd;
}

}  // namespace

Result<TempFile> TempFile::create() {
  const char* chosen = ::getenv("TMPDIR");
  for (const char* dir : {chosen, "/tmp", "/var/tmp"}) {
    if (!dir || !*dir) continue;
    Fd fd = unnamed_file_in(dir);
    if (fd.valid()) return TempFile(std::move(fd), UINT64_MAX);
  }
  Fd fd(::memfd_create("execd-output", MFD_CLOEXEC));
  if (!fd.valid()) return fail_errno("create a temporary file");
  return TempFile(std::move(fd), kMemoryLimit);
}

Result<void> TempFile::append(std::string_view bytes) {
  if (bytes.size() > limit_ - (size_ - discarded_)) {
    return fail(Code::exhausted,
                "output buffer: the limit of " + std::to_string(limit_) +
                    " bytes in memory is reached and no directory for temporary files can be written");
  }
  uint64_t at = size_;
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("write temporary file");
    at += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  size_ = at;
  return {};
}

Result<size_t> TempFile::read_at(uint64_t offset, char* into, size_t limit) const {
  size_t done = 0;
  while (done < limit) {
    ssize_t n = ::pread(fd_.get(), into + done, limit - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read temporary file");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void TempFile::truncate() {
  if (::ftruncate(fd_.get(), 0) == 0) size_ = discarded_ = 0;
}

bool TempFile::discard_before(uint64_t offset) {
  constexpr uint64_t kStep = 4 << 20;
  if (offset < discarded_ + kStep) return true;
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(discarded_),
                  static_cast<off_t>(offset - discarded_)) < 0)
    return false;
  discarded_ = offset;
  return true;
}

}  // namespace osb::execd
