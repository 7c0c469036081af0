#include "sys/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ids.h"

namespace osb::sys {
namespace {

constexpr int kMaxDepth = 32;

Result<void> remove_entry(int trash, int parent, const char* name, int depth);

Result<void> empty_directory(int trash, int dir, int depth) {
  DIR* stream = ::fdopendir(dir);
  if (!stream) {
    ::close(dir);
    return fail_errno("read a directory in the trash");
  }
  Result<void> result;
  while (struct dirent* entry = ::readdir(stream)) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entry->d_type != DT_DIR && ::unlinkat(::dirfd(stream), entry->d_name, 0) == 0) continue;
    auto done = remove_entry(trash, ::dirfd(stream), entry->d_name, depth);
    if (!done) result = std::move(done);  // go on: remove as much as can be removed
  }
  ::closedir(stream);
  return result;
}

Result<void> remove_entry(int trash, int parent, const char* name, int depth) {
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  if (errno == ENOTDIR) {
    if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return {};
    return fail_errno("remove a file in the trash");
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return fail_errno("remove a directory in the trash");
  if (depth >= kMaxDepth) {
    if (::renameat(parent, name, trash, new_hex_id().c_str()) == 0) return {};
    return fail_errno("move a directory up in the trash");
  }
  int dir = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0) return fail_errno("open a directory in the trash");
  TRY(empty_directory(trash, dir, depth + 1));
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return fail_errno("remove an emptied directory in the trash");
}

}  // namespace

Result<void> remove_from_trash(int trash, const std::string& name) {
  return remove_entry(trash, trash, name.c_str(), 0);
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

Result<std::vector<std::string>> names_in(int dir) {
  // A description of its own: a directory's position is part of it.
  Fd own = TRY(open_at(dir, ".", O_RDONLY | O_DIRECTORY));
  DIR* stream = ::fdopendir(own.get());
  if (!stream) return fail_errno("read a directory");
  (void)own.release();
  std::vector<std::string> names;
  while (struct dirent* entry = ::readdir(stream)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  return names;
}

}  // namespace osb::sys
