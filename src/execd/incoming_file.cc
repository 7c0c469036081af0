#include "execd/incoming_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/ids.h"
#include "execd/directories.h"
#include "execd/paths.h"

namespace osb::execd {
namespace {

// The kernel takes memory for the page cache in pieces as large as the write. For writes of 1 MiB these come
// out of the largest free blocks, and just those a virtual machine may have given back to its host: 2 GB took
// 3.7 to 4.3 s of CPU then, and 1.1 to 1.3 s in pieces of this size, of which there are usually enough.
constexpr size_t kWrite = 64 * 1024;

// The temporary name is nobody's business: an error is told of the name that was asked for.
Error about(Error error, std::string_view temporary, std::string_view destination) {
  if (size_t at = error.message.find(temporary); at != std::string::npos)
    error.message.replace(at, temporary.size(), destination);
  return error;
}

}  // namespace

Result<IncomingFile> IncomingFile::create(const std::string& path) {
  TRY(make_directories(std::string(parent_path(path))));
  struct stat info;
  bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return fail(Code::invalid_argument, path + " is a directory");
  if (exists && (!S_ISREG(info.st_mode) || info.st_nlink > 1)) return open_in_place(path);

  IncomingFile file;
  file.destination_ = path;
  struct stat link;
  if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
    char real[PATH_MAX];
    if (!exists || !::realpath(path.c_str(), real))
      return open_in_place(path);  // a dangling link: makes what it names
    file.destination_ = real;
  }
  if (exists) file.existing_ = info;
  std::string temporary = std::string(parent_path(file.destination_));
  temporary += (temporary == "/" ? ".upload-" : "/.upload-") + new_hex_id();
  auto fd = open_at(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, exists ? 0600 : 0777);
  if (!fd && exists) return open_in_place(path);  // the directory may be closed to us and the file still open
  if (!fd) return std::unexpected(about(std::move(fd).error(), temporary, path));
  file.temporary_.assign(temporary);
  file.fd_ = std::move(*fd);
  return file;
}

Result<IncomingFile> IncomingFile::open_in_place(const std::string& path) {
  IncomingFile file;
  file.destination_ = path;
  file.fd_ = TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0777));
  // Not for files, and a device or pipe shall make us wait rather than fail.
  ::fcntl(file.fd_.get(), F_SETFL, 0);
  return file;
}

IncomingFile::~IncomingFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> IncomingFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    TRY(in_context(destination_, write_all(fd_.get(), bytes.substr(0, kWrite))));
    bytes.remove_prefix(std::min(bytes.size(), kWrite));
  }
  return {};
}

Result<void> IncomingFile::commit(const Permission& permission) {
  if (temporary_.empty()) return apply_permission(destination_, permission);
  std::string temporary = temporary_;
  auto placed = put_into_place(permission);
  if (!placed) return std::unexpected(about(std::move(placed).error(), temporary, destination_));
  return {};
}

Result<void> IncomingFile::put_into_place(const Permission& permission) {
  if (existing_) {
    // Without the right to give files away the owner changes; the contents are what was asked for.
    [[maybe_unused]] int best_effort = ::fchown(fd_.get(), existing_->st_uid, existing_->st_gid);
    if (::fchmod(fd_.get(), existing_->st_mode & 07777) < 0)
      return fail_errno("change mode of " + destination_);
  }
  TRY(apply_permission(temporary_, permission));
  if (::rename(temporary_.c_str(), destination_.c_str()) == 0) {
    temporary_.clear();
    return {};
  }
  // A single file mounted from elsewhere cannot be replaced, only rewritten.
  if (errno != EBUSY && errno != EXDEV) return fail_errno("write " + destination_);
  TRY(copy_into_place());
  return apply_permission(destination_, permission);
}

Result<void> IncomingFile::copy_into_place() {
  Fd from = TRY(open_at(AT_FDCWD, temporary_, O_RDONLY));
  Fd to = TRY(open_at(AT_FDCWD, destination_, O_WRONLY | O_TRUNC));
  while (true) {
    ssize_t n = ::sendfile(to.get(), from.get(), nullptr, 1 << 30);
    if (n == 0) return {};
    if (n < 0 && errno != EINTR) return fail_errno("write " + destination_);
  }
}

}  // namespace osb::execd
