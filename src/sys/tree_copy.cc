#include "sys/tree_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "sys/file_copy.h"

namespace osb::sys {
namespace {

constexpr int kReadDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME;
constexpr size_t kMostTarget = 4096;  // of a link
constexpr size_t kMostPath = 4000;

void append(std::string& out, std::string_view text) {
  auto size = static_cast<uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

void append(std::string& out, int64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Those that a layer keeps: what users set, file capabilities, access control lists.
bool is_kept(std::string_view name) {
  return name.starts_with("user.") || name == "security.capability" || name.starts_with("system.posix_acl_");
}

struct Directory {
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  std::unique_ptr<DIR, Close> from;
  Fd to;
  std::string path;  // "" at the top
  struct stat info{};
  int from_fd() const { return ::dirfd(from.get()); }
};

class TreeCopy {
 public:
  TreeCopy(int to, const CopyMarks& marks) : top_(to), marks_(marks) {}

  Result<CopiedTree> run(int from, int to) {
    TRY(enter(from, ".", Fd(::fcntl(to, F_DUPFD_CLOEXEC, 0)), ""));
    while (!stack_.empty()) TRY(step());
    TRY(ask_marks());
    return std::move(result_);
  }

 private:
  Result<void> enter(int parent, const char* name, Fd to, std::string path);
  Result<void> step();
  Result<void> leave();
  Result<void> ask_marks();
  Result<void> copy(const Directory& at, const char* name);
  Result<void> copy_file(const Directory& at, const char* name, const struct stat& info, std::string& about);
  Result<void> copy_link(const Directory& at, const char* name, const struct stat& info, std::string& about);
  Result<void> make_special(const Directory& at, const char* name, const struct stat& info);
  Result<bool> link_known(const Directory& at, const char* name, const struct stat& info,
                          const std::string& path);
  Result<void> copy_attributes(int from, int to, std::string& about);
  void count(std::string_view about);

  int top_;
  const CopyMarks& marks_;
  std::vector<Directory> stack_;
  struct Left {
    Directory directory;
    std::string about;
  };
  std::vector<Left> left_;  // directories that are complete but for their marks
  std::map<ino_t, std::string> links_;
  CopiedTree result_;
};

std::string describe(const std::string& path, const struct stat& info) {
  std::string about;
  append(about, path);
  append(about, static_cast<int64_t>(info.st_mode));
  append(about, static_cast<int64_t>(info.st_uid));
  append(about, static_cast<int64_t>(info.st_gid));
  append(about, S_ISREG(info.st_mode) ? static_cast<int64_t>(info.st_size) : 0);
  append(about, static_cast<int64_t>(info.st_mtim.tv_sec));
  append(about, static_cast<int64_t>(info.st_mtim.tv_nsec));
  return about;
}

std::string join(const std::string& path, const char* name) {
  return path.empty() ? name : path + "/" + name;
}

// Names in messages are a stranger's, and may be long.
std::string shown(const std::string& path) { return path.size() > 200 ? path.substr(0, 200) + "..." : path; }

// A sum, because directories give their entries in no order.
void TreeCopy::count(std::string_view about) {
  Sha256Digest one = sha256_digest(about);
  unsigned carry = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    carry += result_.digest[i] + one[i];
    result_.digest[i] = static_cast<uint8_t>(carry);
    carry >>= 8;
  }
}

Result<void> TreeCopy::enter(int parent, const char* name, Fd to, std::string path) {
  if (stack_.size() >= kMostDepth)
    return fail(Code::too_large, "directories are nested more than " + std::to_string(kMostDepth) + " deep");
  if (!to.valid()) return fail_errno("open the copy of " + shown(path));
  int fd = ::openat(parent, name, kReadDirectory);
  if (fd < 0) return fail_errno("open " + shown(path));
  Directory directory{{}, std::move(to), std::move(path), {}};
  directory.from.reset(::fdopendir(fd));
  if (!directory.from) {
    ::close(fd);
    return fail_errno("read " + shown(directory.path));
  }
  if (::fstat(fd, &directory.info) < 0) return fail_errno("look at " + shown(directory.path));
  stack_.push_back(std::move(directory));
  return {};
}

// One entry of the deepest directory, or its end.
Result<void> TreeCopy::step() {
  Directory& at = stack_.back();
  errno = 0;
  struct dirent* entry = ::readdir(at.from.get());
  if (!entry && errno != 0) return fail_errno("read " + shown(at.path));
  if (!entry) return leave();
  std::string_view name = entry->d_name;
  if (name == "." || name == "..") return {};
  return copy(at, entry->d_name);
}

Result<void> TreeCopy::copy(const Directory& at, const char* name) {
  struct stat info{};
  std::string path = join(at.path, name);
  if (::fstatat(at.from_fd(), name, &info, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("look at " + shown(path));
  ++result_.entries;
  if (S_ISDIR(info.st_mode)) {
    if (::mkdirat(at.to.get(), name, 0700) < 0) return fail_errno("make " + shown(path));
    Fd to(::openat(at.to.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    int parent = at.from_fd();
    return enter(parent, name, std::move(to), std::move(path));  // `at` may move
  }
  std::string about = describe(path, info);
  if (TRY(link_known(at, name, info, path))) {
    append(about, "link " + links_[info.st_ino]);
  } else if (S_ISREG(info.st_mode)) {
    TRY(in_context(shown(path), copy_file(at, name, info, about)));
  } else if (S_ISLNK(info.st_mode)) {
    TRY(in_context(shown(path), copy_link(at, name, info, about)));
  } else {
    TRY(in_context(shown(path), make_special(at, name, info)));
  }
  count(about);
  return {};
}

// Whether it is another name of a file that was copied.
Result<bool> TreeCopy::link_known(const Directory& at, const char* name, const struct stat& info,
                                  const std::string& path) {
  if (info.st_nlink < 2 || !S_ISREG(info.st_mode)) return false;
  auto known = links_.find(info.st_ino);
  if (known == links_.end()) {
    // What cannot be named becomes a file of its own each time.
    if (path.size() < kMostPath) links_.emplace(info.st_ino, path);
    return false;
  }
  if (::linkat(top_, known->second.c_str(), at.to.get(), name, 0) == 0) return true;
  if (errno == EMLINK) return false;
  return fail_errno("link " + shown(path));
}

Result<void> TreeCopy::copy_file(const Directory& at, const char* name, const struct stat& info,
                                 std::string& about) {
  Fd from(::openat(at.from_fd(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME));
  if (!from.valid()) return fail_errno("open");
  Fd to(::openat(at.to.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!to.valid()) return fail_errno("make its copy");
  TRY(copy_data(from.get(), to.get(), info.st_size, info.st_blocks));
  result_.bytes += static_cast<uint64_t>(info.st_size);
  // In this order: a change of the owner takes set-id bits and file capabilities away.
  if (::fchown(to.get(), info.st_uid, info.st_gid) < 0) return fail_errno("set its owner");
  if (::fchmod(to.get(), info.st_mode & 07777) < 0) return fail_errno("set its mode");
  TRY(copy_attributes(from.get(), to.get(), about));
  const struct timespec times[2] = {info.st_mtim, info.st_mtim};
  if (::futimens(to.get(), times) < 0) return fail_errno("set its times");
  return {};
}

Result<void> TreeCopy::copy_link(const Directory& at, const char* name, const struct stat& info,
                                 std::string& about) {
  std::string target(kMostTarget, '\0');
  ssize_t n = ::readlinkat(at.from_fd(), name, target.data(), target.size());
  if (n < 0) return fail_errno("read the link");
  target.resize(static_cast<size_t>(n));
  append(about, target);
  if (::symlinkat(target.c_str(), at.to.get(), name) < 0) return fail_errno("make the link");
  if (::fchownat(at.to.get(), name, info.st_uid, info.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("set its owner");
  const struct timespec times[2] = {info.st_mtim, info.st_mtim};
  if (::utimensat(at.to.get(), name, times, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno("set its times");
  return {};
}

Result<void> TreeCopy::make_special(const Directory& at, const char* name, const struct stat& info) {
  bool is_whiteout = S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0);
  if (!is_whiteout && !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode))
    return fail(Code::permission_denied, "a device, which no sandbox can make");
  if (::mknodat(at.to.get(), name, info.st_mode & (S_IFMT | 07777), 0) < 0) return fail_errno("make it");
  if (::fchownat(at.to.get(), name, info.st_uid, info.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("set its owner");
  if (!is_whiteout && ::fchmodat(at.to.get(), name, info.st_mode & 07777, 0) < 0)
    return fail_errno("set its mode");
  const struct timespec times[2] = {info.st_mtim, info.st_mtim};
  if (::utimensat(at.to.get(), name, times, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno("set its times");
  return {};
}

Result<void> TreeCopy::copy_attributes(int from, int to, std::string& about) {
  char few[512];
  ssize_t size = ::flistxattr(from, few, sizeof few);
  if (size == 0 || (size < 0 && errno == EOPNOTSUPP)) return {};
  std::string names;
  if (size > 0) {
    names.assign(few, static_cast<size_t>(size));
  } else {
    names.resize(XATTR_LIST_MAX);
    size = ::flistxattr(from, names.data(), names.size());
    if (size < 0) return fail_errno("list its attributes");
    names.resize(static_cast<size_t>(size));
  }
  std::vector<std::string> kept;
  for (size_t at = 0; at < names.size(); at += std::strlen(names.c_str() + at) + 1) {
    if (is_kept(names.c_str() + at)) kept.emplace_back(names.c_str() + at);
  }
  std::sort(kept.begin(), kept.end());
  std::string value;
  for (const std::string& name : kept) {
    value.resize(XATTR_SIZE_MAX);
    ssize_t n = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (n < 0) return fail_errno("read its attribute " + name);
    value.resize(static_cast<size_t>(n));
    if (::fsetxattr(to, name.c_str(), value.data(), value.size(), 0) < 0)
      return fail_errno("set its attribute " + name);
    append(about, name);
    append(about, value);
  }
  return {};
}

// Everything in it is copied: now what was said of the directory itself.
Result<void> TreeCopy::leave() {
  Left left{std::move(stack_.back()), {}};
  stack_.pop_back();
  Directory& done = left.directory;
  int from = done.from_fd(), to = done.to.get();
  left.about = describe(done.path, done.info);
  if (::fchown(to, done.info.st_uid, done.info.st_gid) < 0 || ::fchmod(to, done.info.st_mode & 07777) < 0)
    return fail_errno("own " + shown(done.path));
  TRY(in_context(shown(done.path), copy_attributes(from, to, left.about)));
  const struct timespec times[2] = {done.info.st_mtim, done.info.st_mtim};
  if (::futimens(to, times) < 0) return fail_errno("set the times of " + shown(done.path));
  left_.push_back(std::move(left));
  return left_.size() < kMostMarks ? Result<void>() : ask_marks();
}

Result<void> TreeCopy::ask_marks() {
  if (left_.empty()) return {};
  std::vector<int> from, to;
  for (const Left& left : left_) {
    from.push_back(left.directory.from_fd());
    to.push_back(left.directory.to.get());
  }
  std::vector<bool> opaque = TRY(marks_(from, to));
  if (opaque.size() != left_.size()) return fail(Code::internal, "as many marks as there are directories");
  for (size_t i = 0; i < left_.size(); ++i) {
    if (opaque[i]) append(left_[i].about, "opaque");
    count(left_[i].about);
  }
  left_.clear();
  return {};
}

}  // namespace

Result<CopiedTree> copy_tree(int from, int to, const CopyMarks& marks) {
  return TreeCopy(to, marks).run(from, to);
}

}  // namespace osb::sys
