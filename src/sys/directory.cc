#include "sys/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/fd.h"

namespace osb::sys {
namespace {

enum class Kind { any, directory };

Result<std::vector<std::string>> list(Fd dir, Kind kind) {
  DIR* stream = ::fdopendir(dir.get());
  if (!stream) return fail_errno("read a directory");
  (void)dir.release();
  std::vector<std::string> names;
  // A list that breaks off is none: whoever takes it for whole takes what lives for gone.
  int failed = 0;
  while (true) {
    errno = 0;
    struct dirent* entry = ::readdir(stream);
    failed = errno;
    if (entry == nullptr) break;
    std::string_view name = entry->d_name;
    bool wanted = kind == Kind::any || entry->d_type == DT_DIR;
    if (wanted && name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  if (failed != 0) return fail_errno("read a directory", failed);
  return names;
}

}  // namespace

Result<std::vector<std::string>> names_in(int dir) {
  // A description of its own: a directory's position is part of it.
  return list(TRY(open_at(dir, ".", O_RDONLY | O_DIRECTORY)), Kind::any);
}

Result<std::vector<std::string>> names_in(const std::string& path) {
  return list(TRY(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY)), Kind::any);
}

Result<std::vector<std::string>> directories_in(const std::string& path) {
  return list(TRY(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY)), Kind::directory);
}

Result<bool> is_empty_directory(int dir) {
  if (::lseek(dir, 0, SEEK_SET) < 0) return fail_errno("rewind a directory");
  // Room for "." and ".." and one more, whose name may be long.
  alignas(struct dirent64) char entries[512];
  while (true) {
    ssize_t size = ::getdents64(dir, entries, sizeof entries);
    if (size < 0) return fail_errno("list a directory");
    if (size == 0) return true;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const struct dirent64*>(entries + at);
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") return false;
      at += entry->d_reclen;
    }
  }
}

Result<void> ensure_directory(const std::string& path, mode_t mode, uid_t uid, gid_t gid) {
  if (::mkdir(path.c_str(), mode) < 0 && errno != EEXIST) return fail_errno("make " + path);
  if (::chown(path.c_str(), uid, gid) < 0 || ::chmod(path.c_str(), mode) < 0)
    return fail_errno("own " + path);
  return {};
}

void spread_subdirectories(int dir) {
  int flags = 0;
  if (::ioctl(dir, FS_IOC_GETFLAGS, &flags) < 0 || (flags & FS_TOPDIR_FL)) return;
  flags |= FS_TOPDIR_FL;
  (void)::ioctl(dir, FS_IOC_SETFLAGS, &flags);
}

}  // namespace osb::sys
