#include "image/tree_writer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/strings.h"
#include "sys/remove_tree.h"

namespace osb::image {
namespace {

constexpr size_t kMaxPath = 4000;
constexpr size_t kMaxDepth = 256;
constexpr int64_t kIds = 0x10000;  // as many as a sandbox has

Result<Fd> open_in_root(int root, const std::string& path, int flags) {
  if (path.empty()) return open_at(root, ".", flags);
  struct open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  if (fd < 0) return fail_errno("open " + path);
  return Fd(static_cast<int>(fd));
}

std::pair<std::string, std::string> split_last(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == path.npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

bool is_whiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0); }

}  // namespace

Result<std::string> clean_entry_path(std::string_view path) {
  std::string out;
  size_t depth = 0;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return fail(Code::invalid_argument, "its name climbs out of the image with \"..\"");
    if (part.size() > 255) return fail(Code::invalid_argument, "a part of its name is longer than 255 bytes");
    if (!out.empty()) out.push_back('/');
    out += part;
    if (++depth > kMaxDepth) return fail(Code::invalid_argument, "it lies deeper than 256 directories");
  }
  if (out.size() > kMaxPath) return fail(Code::invalid_argument, "its name is longer than 4000 bytes");
  return out;
}

// Missing parents are made as an ordinary archive would have them.
Result<int> TreeWriter::parent_of(const std::string& path) {
  if (cached_path_ == path) return cached_.get();
  auto opened = open_in_root(root_, path, O_PATH | O_DIRECTORY);
  if (!opened && opened.error().sys_errno == ENOENT && !path.empty()) {
    auto [above, name] = split_last(path);
    int parent = TRY(parent_of(above));
    if (::mkdirat(parent, name.c_str(), 0755) < 0) {
      // A link that leads nowhere has the name. Nothing can lie behind it.
      return fail_errno("make the directory " + path);
    }
    opened = open_in_root(root_, path, O_PATH | O_DIRECTORY);
  }
  if (!opened) return std::unexpected(std::move(opened.error()));
  cached_path_ = path;
  cached_ = std::move(*opened);
  return cached_.get();
}

Result<void> TreeWriter::ensure_directory(const std::string& path) {
  TRY(parent_of(path));
  return {};
}

Result<TreeWriter::Place> TreeWriter::place(const std::string& path) {
  if (path.empty()) return fail(Code::invalid_argument, "the root of an image must be a directory");
  auto [above, name] = split_last(path);
  return Place{TRY(parent_of(above)), std::move(name)};
}

Result<void> TreeWriter::clear(const Place& place) {
  // The path in the cache may lead through what goes now. Its descriptor stays open: `place` borrows it.
  cached_path_.reset();
  if (::unlinkat(place.parent, place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return fail_errno("replace it");
  if (trash_.empty()) {
    trash_ = ".osb-trash-" + new_hex_id();
    if (::mkdirat(root_, trash_.c_str(), 0700) < 0) return fail_errno("make a trash directory");
  }
  std::string away = trash_ + "/" + new_hex_id();
  if (::renameat(place.parent, place.name.c_str(), root_, away.c_str()) < 0) return fail_errno("replace it");
  return {};
}

Result<void> TreeWriter::empty_trash() {
  if (trash_.empty()) return {};
  TRY(sys::remove_from_trash(root_, trash_));
  trash_.clear();
  return {};
}

Result<void> TreeWriter::own(int dir, const char* name, const Attributes& attributes) const {
  if (owners_ == Owners::ignore || (attributes.uid == 0 && attributes.gid == 0)) return {};
  if (attributes.uid < 0 || attributes.uid >= kIds || attributes.gid < 0 || attributes.gid >= kIds) {
    return fail(Code::invalid_argument, "its owner " + std::to_string(attributes.uid) + ":" +
                                            std::to_string(attributes.gid) +
                                            " is outside the 65536 ids of a sandbox");
  }
  int flags = AT_SYMLINK_NOFOLLOW | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (::fchownat(dir, name, static_cast<uid_t>(attributes.uid), static_cast<gid_t>(attributes.gid), flags) <
      0)
    return fail_errno("own");
  return {};
}

Result<void> TreeWriter::directory(const std::string& path, const Attributes& attributes) {
  if (!path.empty()) {
    Place at = TRY(place(path));
    // Its own mode comes with finish(): a set-group-id directory would lend its group to what is made in it.
    if (::mkdirat(at.parent, at.name.c_str(), 0755) < 0) {
      if (errno != EEXIST) return fail_errno("make the directory");
      struct stat info{};
      if (::fstatat(at.parent, at.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_errno("look at it");
      if (!S_ISDIR(info.st_mode)) {
        if (is_whiteout(info)) opaque_.push_back(path);
        TRY(clear(at));
        if (::mkdirat(at.parent, at.name.c_str(), 0755) < 0) return fail_errno("make the directory");
      }
    }
    TRY(own(at.parent, at.name.c_str(), attributes));
  } else {
    TRY(own(root_, ".", attributes));
  }
  directories_[path] = attributes;
  return {};
}

Result<Fd> TreeWriter::create_file(const std::string& path, const Attributes& attributes) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  Place at = TRY(place(path));
  auto made = open_at(at.parent, at.name, kFlags, attributes.mode & 0777);
  if (!made && made.error().sys_errno == EEXIST) {
    TRY(clear(at));
    made = open_at(at.parent, at.name, kFlags, attributes.mode & 0777);
  }
  if (!made) return std::unexpected(std::move(made.error()));
  TRY(own(made->get(), "", attributes));
  return made;
}

Result<void> TreeWriter::finish_file(int fd, const Attributes& attributes) {
  // A change of owner and every write take these bits away.
  if ((attributes.mode & 07000) && ::fchmod(fd, attributes.mode & 07777) < 0)
    return fail_errno("set the mode");
  struct timespec times[2] = {{0, UTIME_OMIT}, {attributes.mtime, attributes.mtime_nsec}};
  if (::futimens(fd, times) < 0) return fail_errno("set the time");
  return {};
}

Result<void> TreeWriter::symlink(const std::string& path, const std::string& target,
                                 const Attributes& attributes) {
  if (target.empty() || target.size() >= 4096)
    return fail(Code::invalid_argument, "a link without a usable target");
  Place at = TRY(place(path));
  if (::symlinkat(target.c_str(), at.parent, at.name.c_str()) < 0) {
    if (errno != EEXIST) return fail_errno("make the link");
    TRY(clear(at));
    if (::symlinkat(target.c_str(), at.parent, at.name.c_str()) < 0) return fail_errno("make the link");
  }
  TRY(own(at.parent, at.name.c_str(), attributes));
  struct timespec times[2] = {{0, UTIME_OMIT}, {attributes.mtime, attributes.mtime_nsec}};
  if (::utimensat(at.parent, at.name.c_str(), times, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("set the time");
  return {};
}

Result<void> TreeWriter::hard_link(const std::string& path, const std::string& target) {
  if (path == target) return {};
  auto [above, name] = split_last(target);
  auto from = open_in_root(root_, above, O_PATH | O_DIRECTORY);
  if (!from || target.empty())
    return fail(Code::invalid_argument, "a hard link to " + target + ", which is not there");
  struct stat info{}, present{};
  if (::fstatat(from->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) {
    return fail(Code::invalid_argument, "a hard link to " + target + ", which is not there");
  }
  if (S_ISDIR(info.st_mode) || is_whiteout(info)) {
    return fail(Code::invalid_argument, "a hard link to " + target + ", which is not a file");
  }
  Place at = TRY(place(path));
  if (::fstatat(at.parent, at.name.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0) {
    if (present.st_dev == info.st_dev && present.st_ino == info.st_ino) return {};
    TRY(clear(at));
  }
  if (::linkat(from->get(), name.c_str(), at.parent, at.name.c_str(), 0) < 0)
    return fail_errno("make the hard link");
  return {};
}

Result<void> TreeWriter::fifo(const std::string& path, const Attributes& attributes) {
  Place at = TRY(place(path));
  TRY(clear(at));
  if (::mknodat(at.parent, at.name.c_str(), S_IFIFO | (attributes.mode & 0777), 0) < 0)
    return fail_errno("make the pipe");
  TRY(own(at.parent, at.name.c_str(), attributes));
  struct timespec times[2] = {{0, UTIME_OMIT}, {attributes.mtime, attributes.mtime_nsec}};
  if (::utimensat(at.parent, at.name.c_str(), times, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("set the time");
  return {};
}

Result<bool> TreeWriter::whiteout(const std::string& path) {
  Place at = TRY(place(path));
  if (::mknodat(at.parent, at.name.c_str(), S_IFCHR, makedev(0, 0)) == 0) return true;
  if (errno != EEXIST) return fail_errno("mark it as removed");
  struct stat info{};
  if (::fstatat(at.parent, at.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno("look at it");
  // What this layer itself has there replaces the lower one anyway; only a directory would be merged with it.
  return !S_ISDIR(info.st_mode);
}

Result<void> TreeWriter::set_xattr(int fd, const std::string& name, std::string_view value) const {
  if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) < 0) return fail_errno("set " + name);
  return {};
}

Result<Fd> TreeWriter::open_for_xattr(const std::string& path) const {
  return open_in_root(root_, path, O_RDONLY | O_DIRECTORY);
}

Result<void> TreeWriter::finish() {
  cached_path_.reset();
  TRY(empty_trash());
  // Children before parents, whose new mode may shut this process out.
  for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) {
    const auto& [path, attributes] = *it;
    // Something else may have taken its place since.
    auto dir = open_in_root(root_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!dir) continue;
    if (::fchmod(dir->get(), attributes.mode & 07777) < 0) return fail_errno("set the mode of " + path);
    struct timespec times[2] = {{0, UTIME_OMIT}, {attributes.mtime, attributes.mtime_nsec}};
    if (::futimens(dir->get(), times) < 0) return fail_errno("set the time of " + path);
  }
  directories_.clear();
  return {};
}

}  // namespace osb::image
