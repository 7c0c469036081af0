#include "store/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "store/database.h"

namespace osb::store {
namespace {

constexpr auto kLockPatience = std::chrono::seconds(1);
constexpr fsfilcnt_t kLeastNewFiles = 16;
// Beside the bytes that SQLite locks (512 from 0x40000000 on), which no data ever lies at.
constexpr off_t kLockByte = 0x40000000 + 4096;

// A lock of the open file, not of the process: SQLite's own, which are of the process, neither see nor drop
// it.
bool lock_soon(int file, short kind) {
  auto give_up = std::chrono::steady_clock::now() + kLockPatience;
  while (true) {
    struct flock lock{};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = kLockByte;
    lock.l_len = 1;
    if (::fcntl(file, F_OFD_SETLK, &lock) == 0) return true;
    // File systems that cannot lock have to do without.
    if (errno != EAGAIN && errno != EACCES) return true;
    if (std::chrono::steady_clock::now() >= give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Result<void> make_parent(const std::string& path) {
  auto parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (parent.empty() || std::filesystem::exists(parent, error)) return {};
  std::filesystem::create_directories(parent, error);
  if (error) return fail_errno("create directory " + parent.string() + " for store.path", error.value());
  std::filesystem::permissions(parent, std::filesystem::perms::owner_all, error);
  return {};
}

}  // namespace

Result<Files> Files::open(const std::string& path) {
  TRY(make_parent(path));
  Files files;
  files.path_ = path;
  // SQLite would create it with the umask's mode; the state holds metadata of every tenant.
  auto opened = open_at(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
  if (!opened && opened.error().sys_errno == EROFS) {
    files.read_only_ = true;
    opened = open_at(AT_FDCWD, path, O_RDONLY);
  }
  files.file_ = TRY(in_context("open the state database", std::move(opened)));
  if (!lock_soon(files.file_.get(), files.read_only_ ? F_RDLCK : F_WRLCK)) {
    return fail(Code::already_exists,
                "another service uses the state database " + path + "; stop it, or set another store.path");
  }
  return files;
}

bool Files::writable_again() const {
  if (!read_only_) return false;
  auto opened = open_at(AT_FDCWD, path_, O_RDWR);
  return opened || opened.error().sys_errno != EROFS;
}

bool Files::reserve() {
  if (reserved_ || read_only_) return true;
  std::string parent = std::filesystem::path(path_).parent_path();
  struct statvfs disk{};
  if (::statvfs(parent.empty() ? "." : parent.c_str(), &disk) < 0) return false;
  if (static_cast<int64_t>(disk.f_bavail * disk.f_frsize) < 2 * kLogBytes) return false;
  if (!log_.valid()) {
    auto log = open_at(AT_FDCWD, path_ + "-wal", O_RDWR | O_NOFOLLOW);
    if (!log) return false;
    log_ = std::move(*log);
  }
  // The size stays what SQLite made it: only the blocks are there already. Where a file system cannot do
  // that, there is no reserve, and what cannot be written waits in memory (backlog.h).
  reserved_ = ::fallocate(log_.get(), FALLOC_FL_KEEP_SIZE, 0, kLogBytes) == 0 || errno == EOPNOTSUPP;
  return reserved_;
}

Result<void> check_room(const std::string& directory) {
  struct statvfs disk{};
  if (::statvfs(directory.c_str(), &disk) < 0) return fail_errno("look at the disk of " + directory);
  bool is_full = static_cast<int64_t>(disk.f_bavail * disk.f_frsize) < kLeastRoom;
  bool no_files = disk.f_files > 0 && disk.f_favail < kLeastNewFiles;
  if (is_full || no_files) {
    return std::unexpected(Error{Code::exhausted, ENOSPC, "no space is left on the disk of " + directory});
  }
  return {};
}

}  // namespace osb::store
