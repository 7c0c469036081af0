#include "launcher/secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::launcher {
namespace {

constexpr size_t kBytes = 32;
constexpr mode_t kMode = 0400;

// Under another name first, so that whoever reads it finds all of it. Nobody waits for the disk, which would
// be most of the time of a first start: see is_cut_off().
Result<void> create_secret(int dir, const std::string& name, uid_t uid, gid_t gid) {
  char bytes[kBytes];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    return fail_errno("random bytes");
  std::string unfinished = name + ".new";
  if (::unlinkat(dir, unfinished.c_str(), 0) < 0 && errno != ENOENT)
    return fail_errno("remove " + unfinished);
  Fd file = TRY(open_beneath(dir, unfinished, O_WRONLY | O_CREAT | O_EXCL, kMode));
  TRY(write_all(file.get(), {bytes, sizeof bytes}));
  if (::fchown(file.get(), uid, gid) < 0) return fail_errno("write " + unfinished);
  if (::renameat(dir, unfinished.c_str(), dir, name.c_str()) < 0) return fail_errno("name the secret");
  return {};
}

// What a power cut leaves of a file whose bytes were not on the disk yet: nothing, or zeros. No sandbox has
// survived that, so no endpoint is missed.
bool is_cut_off(int file) {
  char bytes[kBytes + 1];
  ssize_t size = ::pread(file, bytes, sizeof bytes, 0);
  return size >= 0 && std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; });
}

}  // namespace

Result<void> ensure_secret(int dir, const char* name, uid_t uid, gid_t gid) {
  auto file = open_beneath(dir, name, O_RDONLY | O_NONBLOCK);
  if (!file && file.error().code == Code::not_found) return create_secret(dir, name, uid, gid);
  if (!file) return std::unexpected(std::move(file.error()));
  struct stat info{};
  if (::fstat(file->get(), &info) < 0) return fail_errno("look at the secret");
  if (S_ISREG(info.st_mode) && is_cut_off(file->get())) return create_secret(dir, name, uid, gid);
  // Fewer bytes than we wrote would be a secret that can be guessed.
  if (!S_ISREG(info.st_mode) || info.st_size != static_cast<off_t>(kBytes)) {
    return fail(Code::corrupt,
                std::string(name) +
                    " in the state directory is not what this service wrote; remove it (endpoints "
                    "that were handed out then stop working) and start again");
  }
  if (::fchown(file->get(), uid, gid) < 0 || ::fchmod(file->get(), kMode) < 0)
    return fail_errno("own the secret");
  return {};
}

}  // namespace osb::launcher
