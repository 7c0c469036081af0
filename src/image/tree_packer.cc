#include "image/tree_packer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "sys/directory.h"

namespace osb::image {
namespace {

constexpr int kMaxDepth = 256;
// A descriptor for each; a worker has 256 of them, and some are taken.
constexpr int kMaxLayerDepth = 240;
constexpr size_t kBlock = 256 << 10;
constexpr size_t kMaxXattr = 64 << 10;
constexpr std::string_view kWhiteout = ".wh.";
constexpr char kOpaque[] = ".wh..wh..opq";

bool is_whiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0); }

class Writer {
 public:
  Writer(struct archive* out, dev_t device, const PackRules& rules)
      : out_(out),
        device_(device),
        rules_(rules),
        entry_(lib_.archive_entry_new(), lib_.archive_entry_free) {}

  Result<void> tree(int dir, const std::string& path, int depth) {
    int most = rules_.as_layer ? kMaxLayerDepth : kMaxDepth;
    if (depth > most)
      return fail(Code::too_large, path + ": deeper than " + std::to_string(most) + " directories");
    if (rules_.opaque.contains(path)) TRY(mark(path.empty() ? kOpaque : path + "/" + kOpaque));
    auto names = TRY(sys::names_in(dir));
    std::ranges::sort(names);
    for (const std::string& name : names) {
      std::string below = path.empty() ? name : path + "/" + name;
      auto done = node(dir, name, below, depth);
      if (done) continue;
      // The deepest name says it all.
      if (!failed_) done = in_context(below, std::move(done));
      failed_ = true;
      return done;
    }
    return {};
  }

  Result<void> root(int dir, const struct stat& info) {
    begin(".", info);
    add_xattrs(dir);
    return header();
  }

 private:
  Result<void> node(int dir, const std::string& name, const std::string& path, int depth) {
    struct stat info{};
    if (::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno("look at it");
    if (S_ISSOCK(info.st_mode)) return {};
    if (rules_.as_layer) {
      // Before links: the kernel makes many whiteouts of one.
      if (is_whiteout(info)) return mark(path.substr(0, path.size() - name.size()).append(kWhiteout) + name);
      if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) return {};
      if (name.starts_with(kWhiteout))
        return fail(Code::unsupported, "in a layer this name would mean that something is removed");
    }
    begin(path, info);
    if (!S_ISDIR(info.st_mode) && info.st_nlink > 1) {
      auto [first, is_first] = links_.try_emplace({info.st_dev, info.st_ino}, path);
      if (!is_first) {
        lib_.archive_entry_set_hardlink(entry_.get(), first->second.c_str());
        lib_.archive_entry_set_size(entry_.get(), 0);
        return header();
      }
    }
    if (S_ISREG(info.st_mode)) return file(dir, name, info);
    if (S_ISLNK(info.st_mode)) {
      std::string target(4096, '\0');
      ssize_t n = ::readlinkat(dir, name.c_str(), target.data(), target.size());
      if (n < 0) return fail_errno("read the link");
      target.resize(static_cast<size_t>(n));
      lib_.archive_entry_set_symlink(entry_.get(), target.c_str());
    }
    if (!S_ISDIR(info.st_mode)) return header();
    Fd below = TRY(open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    add_xattrs(below.get());
    TRY(header());
    // Another file system is mounted here: its place belongs to the image, its content does not.
    if (info.st_dev != device_) return {};
    return tree(below.get(), path, depth + 1);
  }

  void begin(const std::string& path, const struct stat& info) {
    lib_.archive_entry_clear(entry_.get());
    if (rules_.as_layer) {
      lib_.archive_entry_set_filetype(entry_.get(), info.st_mode & S_IFMT);
      lib_.archive_entry_set_perm(entry_.get(), info.st_mode & 07777);
      lib_.archive_entry_set_uid(entry_.get(), info.st_uid);
      lib_.archive_entry_set_gid(entry_.get(), info.st_gid);
      lib_.archive_entry_set_mtime(entry_.get(), info.st_mtim.tv_sec, 0);
      lib_.archive_entry_set_size(entry_.get(), info.st_size);
    } else {
      lib_.archive_entry_copy_stat(entry_.get(), &info);
    }
    lib_.archive_entry_set_pathname(entry_.get(), path.c_str());
    if (!S_ISREG(info.st_mode)) lib_.archive_entry_set_size(entry_.get(), 0);
  }

  // An empty file that says with its name that something is gone.
  Result<void> mark(const std::string& path) {
    struct stat info{};
    info.st_mode = S_IFREG | 0644;
    begin(path, info);
    return header();
  }

  Result<void> header() {
    if (lib_.archive_write_header(out_, entry_.get()) < ARCHIVE_WARN) return broken();
    return {};
  }

  Result<void> file(int dir, const std::string& name, const struct stat& info) {
    Fd fd = TRY(open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    add_xattrs(fd.get());
    TRY(header());
    // As many bytes as the header says, whatever happens to the file meanwhile.
    for (int64_t left = info.st_size; left > 0;) {
      ssize_t n = ::read(fd.get(), buffer_.data(), static_cast<size_t>(std::min<int64_t>(left, kBlock)));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno("read it");
      if (n == 0) return fail(Code::wrong_state, "it became shorter while it was read");
      if (lib_.archive_write_data(out_, buffer_.data(), static_cast<size_t>(n)) < 0) return broken();
      left -= n;
    }
    return {};
  }

  // user.* and file capabilities, as unpacking takes them.
  void add_xattrs(int fd) {
    std::string names(kMaxXattr, '\0');
    ssize_t size = ::flistxattr(fd, names.data(), names.size());
    std::set<std::string> wanted;  // in order, whatever the file system's is
    for (ssize_t at = 0; at < size;) {
      std::string name(names.c_str() + at);
      at += static_cast<ssize_t>(name.size()) + 1;
      if (name == "security.capability" || name.starts_with("user.")) wanted.insert(std::move(name));
    }
    for (const std::string& name : wanted) {
      std::string value(kMaxXattr, '\0');
      ssize_t n = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
      if (n >= 0)
        lib_.archive_entry_xattr_add_entry(entry_.get(), name.c_str(), value.data(), static_cast<size_t>(n));
    }
  }

  Result<void> broken() {
    const char* text = lib_.archive_error_string(out_);
    return fail(Code::internal, std::string("cannot be packed: ") + (text ? text : "unknown reason"));
  }

  const Libraries& lib_ = libraries();
  struct archive* out_;
  dev_t device_;
  const PackRules& rules_;
  std::unique_ptr<struct archive_entry, decltype(lib_.archive_entry_free)> entry_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
  std::string buffer_ = std::string(kBlock, '\0');
  bool failed_ = false;
};

}  // namespace

Result<void> pack_tree(struct archive* out, int directory, const PackRules& rules) {
  struct stat info{};
  if (::fstat(directory, &info) < 0) return fail_errno("look at the directory");
  Writer writer(out, info.st_dev, rules);
  TRY(writer.root(directory, info));
  return writer.tree(directory, "", 0);
}

}  // namespace osb::image
