#include "cli/rotating_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace osb::cli {
namespace {

constexpr mode_t kMode = 0600;  // ids of sandboxes, and what went wrong, are for whoever runs the service

// Not through a link: root may write where others own the directory.
Result<Fd> open_for_appending(const std::string& path) {
  return open_at(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, kMode);
}

}  // namespace

Result<RotatingFile> RotatingFile::open(Options options) {
  std::error_code error;
  auto parent = std::filesystem::path(options.path).parent_path();
  if (!parent.empty() && !std::filesystem::create_directories(parent, error) && error)
    return fail_errno("make " + parent.string(), error.value());
  Fd file = TRY(open_for_appending(options.path));
  struct stat info{};
  if (::fstat(file.get(), &info) < 0) return fail_errno("look at " + options.path);
  if (!S_ISREG(info.st_mode)) return fail(Code::invalid_argument, options.path + " is not a file");
  return RotatingFile(std::move(options), std::move(file), info.st_size);
}

void RotatingFile::rotate() {
  auto numbered = [&](int64_t n) { return options_.path + "." + std::to_string(n); };
  for (int64_t n = options_.backups; n > 1; --n) ::rename(numbered(n - 1).c_str(), numbered(n).c_str());
  int moved = options_.backups > 0 ? ::rename(options_.path.c_str(), numbered(1).c_str())
                                   : ::unlink(options_.path.c_str());
  auto fresh = moved == 0 ? open_for_appending(options_.path) : fail_errno("rotate");
  if (fresh) {
    file_ = std::move(*fresh);
    size_ = 0;
    return;
  }
  // Nobody may rename it any more: the bound is kept all the same.
  if (::ftruncate(file_.get(), 0) == 0) size_ = 0;
}

bool RotatingFile::append(std::string_view line) {
  ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written > 0) size_ += written;
  return written == static_cast<ssize_t>(line.size());
}

void RotatingFile::write(std::string_view line) {
  if (size_ > 0 && size_ + static_cast<int64_t>(line.size()) > options_.max_bytes) rotate();
  if (dropped_ > 0 && append("(" + std::to_string(dropped_) + " lines could not be written)\n")) dropped_ = 0;
  if (dropped_ > 0 || !append(line)) ++dropped_;
}

}  // namespace osb::cli
