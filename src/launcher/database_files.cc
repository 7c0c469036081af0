#include "launcher/database_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "sys/directory.h"

namespace osb::launcher {

Result<void> own_database_files(int directory, uid_t uid, gid_t gid) {
  for (const std::string& name : TRY(sys::names_in(directory))) {
    // O_PATH would not do for fchown; without waiting, because it may be a pipe.
    Fd file(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info{};
    if (!file.valid() || ::fstat(file.get(), &info) < 0 || (info.st_uid == uid && info.st_gid == gid))
      continue;
    if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
      log::warn("left alone beside the state database", {{"name", name}});
      continue;
    }
    if (::fchown(file.get(), uid, gid) < 0) return fail_errno("give " + name + " to the service's user");
    log::info("the service's user has changed; the state database is now its own", {{"name", name}});
  }
  return {};
}

Result<void> own_sockets(int directory, gid_t gid) {
  constexpr auto kSame = static_cast<uid_t>(-1);
  for (const std::string& name : TRY(sys::names_in(directory))) {
    struct stat info{};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0 || info.st_gid == gid) continue;
    if (::fchownat(directory, name.c_str(), kSame, gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
      return fail_errno("give the socket " + name + " to the service's group");
  }
  return {};
}

}  // namespace osb::launcher
