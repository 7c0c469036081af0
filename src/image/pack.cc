#include "image/pack.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "image/libraries.h"
#include "sys/caps.h"
#include "sys/directory.h"

namespace osb::image {
namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kBlock = 256 << 10;
constexpr size_t kMaxXattr = 64 << 10;

class Writer {
 public:
  Writer(struct archive* out, dev_t device)
      : out_(out), device_(device), entry_(lib_.archive_entry_new(), lib_.archive_entry_free) {}

  Result<void> tree(int dir, const std::string& path, int depth) {
    if (depth > kMaxDepth) return fail(Code::too_large, path + ": deeper than 256 directories");
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

  Result<void> node(int dir, const std::string& name, const std::string& path, int depth) {
    struct stat info{};
    if (::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno("look at it");
    if (S_ISSOCK(info.st_mode)) return {};
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

  Result<void> root(int dir, const struct stat& info) {
    begin(".", info);
    add_xattrs(dir);
    return header();
  }

 private:
  void begin(const std::string& path, const struct stat& info) {
    lib_.archive_entry_clear(entry_.get());
    lib_.archive_entry_copy_stat(entry_.get(), &info);
    lib_.archive_entry_set_pathname(entry_.get(), path.c_str());
    if (!S_ISREG(info.st_mode)) lib_.archive_entry_set_size(entry_.get(), 0);
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
    for (ssize_t at = 0; at < size;) {
      std::string name(names.c_str() + at);
      at += static_cast<ssize_t>(name.size()) + 1;
      if (name != "security.capability" && !name.starts_with("user.")) continue;
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
  std::unique_ptr<struct archive_entry, decltype(lib_.archive_entry_free)> entry_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
  std::string buffer_ = std::string(kBlock, '\0');
  bool failed_ = false;
};

[[noreturn]] void run_packer(int directory, int stream, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // From here on: may read any file of the host, and change none.
  if (sys::set_capabilities({CAP_DAC_READ_SEARCH}) < 0) ::_exit(1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  auto packed = pack(directory, stream);
  if (packed) ::_exit(0);
  (void)write_all(errors, packed.error().message);
  ::_exit(1);
}

}  // namespace

Result<void> pack(int directory, int out) {
  const Libraries& lib = libraries();
  std::unique_ptr<struct archive, decltype(lib.archive_write_free)> writer(lib.archive_write_new(),
                                                                           lib.archive_write_free);
  lib.archive_write_set_format_pax_restricted(writer.get());
  lib.archive_write_set_bytes_per_block(writer.get(), static_cast<int>(kBlock));
  if (lib.archive_write_open_fd(writer.get(), out) != ARCHIVE_OK)
    return fail(Code::internal, "cannot open a tar stream");
  struct stat info{};
  if (::fstat(directory, &info) < 0) return fail_errno("look at the directory");
  Writer tree(writer.get(), info.st_dev);
  TRY(tree.root(directory, info));
  TRY(tree.tree(directory, "", 0));
  if (lib.archive_write_close(writer.get()) != ARCHIVE_OK)
    return fail(Code::internal, "cannot end the tar stream");
  return {};
}

Result<Packer> Packer::start(const std::string& directory) {
  Fd dir = TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY));
  int stream[2], errors[2];
  if (::pipe2(stream, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd stream_read(stream[0]), stream_write(stream[1]);
  if (::pipe2(errors, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd errors_read(errors[0]), errors_write(errors[1]);
  (void)::fcntl(stream[1], F_SETPIPE_SZ, 1 << 20);
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid == 0) {
    // Whoever reads the stream must see its end when this process ends, and the other way round.
    stream_read.reset();
    errors_read.reset();
    run_packer(dir.get(), stream[1], errors[1], parent);
  }
  if (pid < 0) return fail_errno("fork the packer");
  return Packer(pid, std::move(stream_read), std::move(errors_read));
}

Packer::~Packer() {
  if (!errors_.valid()) return;  // moved from, or finished
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> Packer::finish() {
  stream_.reset();
  std::string message = read_all(errors_.get(), 16 << 10).value_or("");
  errors_.reset();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Code::internal, message.empty() ? "the directory could not be read to its end" : message);
}

}  // namespace osb::image
