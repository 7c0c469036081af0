#include "registry/blob_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "registry/fetcher_process.h"
#include "sys/directory.h"

namespace osb::registry {
namespace {

constexpr time_t kForgottenAfter = 24 * 60 * 60;

// Not what somebody is downloading. Locked meanwhile: whoever waits for it sees that it is gone.
bool unlink_idle(int directory, const std::string& name) {
  auto file = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file && ::flock(file->get(), LOCK_EX | LOCK_NB) < 0) return false;
  return ::unlinkat(directory, name.c_str(), 0) == 0;
}

}  // namespace

Result<BlobDirectory> BlobDirectory::open(const std::string& state_dir) {
  std::string path = state_dir + "/images/store/blobs";
  if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) return fail_errno("make " + path);
  Fd dir = TRY(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (::fchown(dir.get(), kFetcherId, kFetcherId) < 0) return fail_errno("give away " + path);
  return BlobDirectory(std::move(dir));
}

int64_t BlobDirectory::size_of(const std::string& digest) const {
  struct stat info{};
  if (!is_hex_digest(digest) || ::fstatat(dir_.get(), digest.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0)
    return -1;
  return info.st_size;
}

Result<Fd> BlobDirectory::open_blob(const std::string& digest) const {
  if (!is_hex_digest(digest)) return fail(Code::corrupt, "no digest");
  // A fetcher that was taken over may have put anything here: no links, nothing that blocks.
  Fd file = TRY(open_at(dir_.get(), digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (::fstat(file.get(), &info) < 0) return fail_errno("look at a downloaded layer");
  if (!S_ISREG(info.st_mode) || info.st_uid != kFetcherId)
    return fail(Code::corrupt, "a downloaded layer is no file of the download");
  return file;
}

void BlobDirectory::remove(const std::string& digest) const {
  if (is_hex_digest(digest)) (void)::unlinkat(dir_.get(), digest.c_str(), 0);
}

void BlobDirectory::remove_idle(const std::string& digest) const {
  if (is_hex_digest(digest)) (void)unlink_idle(dir_.get(), digest);
}

uint64_t BlobDirectory::sweep(Which which) const {
  auto names = sys::names_in(dir_.get());
  uint64_t freed = 0;
  time_t now = ::time(nullptr);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    struct stat info{};
    if (::fstatat(dir_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) continue;
    if (which == Which::forgotten && now - info.st_mtime < kForgottenAfter) continue;
    if (unlink_idle(dir_.get(), name)) freed += static_cast<uint64_t>(info.st_blocks) * 512;
  }
  return freed;
}

}  // namespace osb::registry
