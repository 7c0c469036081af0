#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "sys/file_copy.h"
#include "sys/tree_copy.h"

namespace osb::sys {
namespace {

constexpr int kReadDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kReadFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

struct Pair {
  std::unique_ptr<DIR, CloseDirectory> one;
  Fd other;
};

// False when there is no such directory.
Result<bool> enter(std::vector<Pair>& stack, int one, int other, const char* name) {
  if (stack.size() >= kMostDepth) return fail(Code::too_large, "directories are nested too deep");
  Pair pair{nullptr, Fd(::openat(other, name, kReadDirectory))};
  if (!pair.other.valid()) return false;
  int fd = ::openat(one, name, kReadDirectory);
  if (fd < 0) return fail_errno("open a directory");
  pair.one.reset(::fdopendir(fd));
  if (!pair.one) {
    ::close(fd);
    return fail_errno("read a directory");
  }
  stack.push_back(std::move(pair));
  return true;
}

Result<bool> same_links(int one, int other, const char* name) {
  char a[4096], b[4096];
  ssize_t n = ::readlinkat(one, name, a, sizeof a), m = ::readlinkat(other, name, b, sizeof b);
  if (n < 0 || m < 0) return fail_errno("read a link");
  return std::string_view(a, static_cast<size_t>(n)) == std::string_view(b, static_cast<size_t>(m));
}

Result<bool> same_entry(std::vector<Pair>& stack, int one, int other, const char* name) {
  struct stat a{}, b{};
  if (::fstatat(one, name, &a, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno("look at a file");
  if (::fstatat(other, name, &b, AT_SYMLINK_NOFOLLOW) < 0) return false;
  if (a.st_mode != b.st_mode || a.st_uid != b.st_uid || a.st_gid != b.st_gid) return false;
  if (S_ISDIR(a.st_mode)) return enter(stack, one, other, name);
  if (S_ISLNK(a.st_mode)) return same_links(one, other, name);
  if (!S_ISREG(a.st_mode)) return true;
  if (a.st_size != b.st_size) return false;
  Fd from(::openat(one, name, kReadFile)), to(::openat(other, name, kReadFile));
  if (!from.valid() || !to.valid()) return fail_errno("open a file");
  return same_data(from.get(), to.get(), a.st_size);
}

}  // namespace

// The digests of both say that there are as many entries on either side: what is in one is in the other.
Result<bool> same_files(int one, int other) {
  std::vector<Pair> stack;
  if (!TRY(enter(stack, one, other, "."))) return false;
  while (!stack.empty()) {
    errno = 0;
    struct dirent* entry = ::readdir(stack.back().one.get());
    if (!entry && errno != 0) return fail_errno("read a directory");
    if (!entry) {
      stack.pop_back();
      continue;
    }
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    int here = ::dirfd(stack.back().one.get()), there = stack.back().other.get();
    if (!TRY(same_entry(stack, here, there, entry->d_name))) return false;
  }
  return true;
}

}  // namespace osb::sys
