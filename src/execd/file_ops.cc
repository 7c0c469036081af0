#include "execd/file_ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "base/fd.h"
#include "execd/directories.h"
#include "execd/paths.h"
#include "execd/spill_buffer.h"
#include "execd/tree_walk.h"

namespace osb::execd {
namespace {

constexpr int kMaxDepth = 4096;

// Removes what is in the directory; the directory itself stays.
Result<void> empty_directory(int dir, const std::string& path, int depth) {
  if (depth > kMaxDepth) return fail(Code::exhausted, "remove " + path + ": nested too deeply");
  int copy = ::fcntl(dir, F_DUPFD_CLOEXEC, 3);
  std::unique_ptr<DIR, int (*)(DIR*)> stream(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
  if (!stream) return fail_errno("read directory " + path);
  while (dirent* entry = ::readdir(stream.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (::unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) return fail_errno("remove " + path + "/" + name);
    auto inner = open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!inner && inner.error().sys_errno == ENOENT) continue;
    if (!inner) return std::unexpected(std::move(inner).error().in("remove " + path));
    TRY(empty_directory(inner->get(), path + "/" + name, depth + 1));
    if (::unlinkat(dir, name.c_str(), AT_REMOVEDIR) < 0 && errno != ENOENT)
      return fail_errno("remove " + path + "/" + name);
  }
  return {};
}

Result<void> copy_bytes(int from, int to, const std::string& name) {
  bool by_kernel = true;
  std::unique_ptr<char[]> buffer;
  constexpr size_t kPiece = 256 * 1024;
  while (true) {
    if (by_kernel) {
      ssize_t n = ::copy_file_range(from, nullptr, to, nullptr, 1 << 30, 0);
      if (n > 0) continue;
      if (n == 0 && ::lseek(from, 0, SEEK_CUR) > 0) return {};
      by_kernel = false;  // across file systems, or a file without a size: by hand
      buffer.reset(new char[kPiece]);
    }
    ssize_t n = ::read(from, buffer.get(), kPiece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read " + name);
    if (n == 0) return {};
    TRY(in_context(name, write_all(to, {buffer.get(), static_cast<size_t>(n)})));
  }
}

Result<void> copy_one(const std::string& from, const std::string& to, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(to.c_str(), 0700) < 0) return fail_errno("create " + to);
  } else if (S_ISLNK(info.st_mode)) {
    char target[PATH_MAX];
    ssize_t n = ::readlink(from.c_str(), target, sizeof target - 1);
    if (n < 0) return fail_errno("read link " + from);
    target[n] = '\0';
    if (::symlink(target, to.c_str()) < 0) return fail_errno("create link " + to);
  } else if (S_ISREG(info.st_mode)) {
    Fd in = TRY(open_at(AT_FDCWD, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    Fd out = TRY(open_at(AT_FDCWD, to, O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY(copy_bytes(in.get(), out.get(), to));
  } else if (::mknod(to.c_str(), info.st_mode, info.st_rdev) < 0) {
    return fail_errno("create " + to);
  }
  return {};
}

// After the contents: writing into a directory changes its time, and a mode may forbid writing.
Result<void> copy_attributes(const std::string& to, const struct stat& info) {
  int changed = ::lchown(to.c_str(), info.st_uid, info.st_gid);
  if (changed < 0 && errno != EPERM) return fail_errno("change owner of " + to);
  if (!S_ISLNK(info.st_mode) && ::chmod(to.c_str(), info.st_mode & 07777) < 0)
    return fail_errno("change mode of " + to);
  timespec times[2] = {info.st_atim, info.st_mtim};
  ::utimensat(AT_FDCWD, to.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return {};
}

Result<void> rename_without_replacing(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return fail_errno("move " + from + " to " + to);
  // A file system without the flag: there is a moment in which somebody else can win.
  struct stat info;
  if (::lstat(to.c_str(), &info) == 0) return fail_errno("move " + from + " to " + to, EEXIST);
  if (::rename(from.c_str(), to.c_str()) < 0) return fail_errno("move " + from + " to " + to);
  return {};
}

}  // namespace

Result<void> remove_file(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return fail(Code::invalid_argument, path + " is a directory; use DELETE /directories");
  }
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return fail_errno("remove " + path);
}

Result<void> remove_tree(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  if (errno != EISDIR && errno != EPERM) return fail_errno("remove " + path);
  auto dir = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!dir && dir.error().sys_errno == ENOENT) return {};
  if (!dir) return std::unexpected(std::move(dir).error().in("remove"));
  TRY(empty_directory(dir->get(), path == "/" ? "" : path, 0));
  if (::rmdir(path.c_str()) < 0 && errno != ENOENT) return fail_errno("remove " + path);
  return {};
}

Result<void> copy_tree(const std::string& from, const std::string& to) {
  struct stat root;
  if (::lstat(from.c_str(), &root) < 0) return fail_errno("copy " + from);
  TRY(copy_one(from, to, root));
  if (!S_ISDIR(root.st_mode)) return copy_attributes(to, root);
  std::vector<std::pair<std::string, struct stat>> directories{{to, root}};
  auto walk = TRY(TreeWalk::open(from, INT64_MAX));
  while (const TreeWalk::Entry* entry = walk.next()) {
    std::string copy = to + entry->path.substr(from.size());
    TRY(copy_one(entry->path, copy, entry->info));
    if (S_ISDIR(entry->info.st_mode)) {
      directories.emplace_back(copy, entry->info);
    } else {
      TRY(copy_attributes(copy, entry->info));
    }
  }
  for (auto it = directories.rbegin(); it != directories.rend(); ++it)
    TRY(copy_attributes(it->first, it->second));
  return {};
}

Result<void> move_path(const std::string& from, const std::string& to) {
  struct stat info;
  if (::lstat(from.c_str(), &info) < 0) return fail_errno("move " + from);
  TRY(make_directories(std::string(parent_path(to)), 0755));
  auto renamed = rename_without_replacing(from, to);
  if (renamed || renamed.error().sys_errno != EXDEV) return renamed;
  if (::lstat(to.c_str(), &info) == 0) return fail_errno("move " + from + " to " + to, EEXIST);
  if (auto copied = copy_tree(from, to); !copied) {
    [[maybe_unused]] auto best_effort = remove_tree(to);
    return copied;
  }
  return remove_tree(from);
}

Result<uint64_t> replace_in_file(const std::string& path, std::string_view old_text,
                                 std::string_view new_text) {
  if (old_text.empty()) return fail(Code::invalid_argument, "the text to replace must not be empty");
  Fd fd = TRY(open_at(AT_FDCWD, path, O_RDWR | O_NONBLOCK));
  struct stat info;
  if (::fstat(fd.get(), &info) < 0) return fail_errno(path);
  if (!S_ISREG(info.st_mode)) return fail(Code::invalid_argument, path + " is not a file");

  constexpr size_t kPiece = 256 * 1024, kInMemory = 32 << 20;
  SpillBuffer result(kInMemory);
  uint64_t count = 0;
  std::string window;
  for (bool at_end = false; !at_end;) {
    size_t kept = window.size();
    window.resize(kept + kPiece);
    ssize_t n = ::read(fd.get(), window.data() + kept, kPiece);
    if (n < 0) return fail_errno("read " + path);
    window.resize(kept + static_cast<size_t>(n));
    at_end = n == 0;
    size_t done = 0;
    for (size_t at; (at = window.find(old_text, done)) != window.npos; done = at + old_text.size(), ++count) {
      TRY(result.append(std::string_view(window).substr(done, at - done)));
      TRY(result.append(new_text));
    }
    // The end of this piece may be the beginning of an occurrence that the next one completes.
    size_t tail = at_end ? 0 : std::min(old_text.size() - 1, window.size() - done);
    TRY(result.append(std::string_view(window).substr(done, window.size() - done - tail)));
    window.erase(0, window.size() - tail);
  }
  if (count == 0) return 0;

  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return fail_errno(path);
  uint64_t size = 0;
  for (std::string piece; !result.empty(); size += piece.size()) {
    TRY(result.take(piece));
    TRY(in_context(path, write_all(fd.get(), piece)));
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) < 0) return fail_errno("truncate " + path);
  return count;
}

}  // namespace osb::execd
