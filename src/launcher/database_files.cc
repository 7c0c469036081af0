#include "launcher/database_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "sys/directory.h"

namespace osb::launcher {

namespace {

// docker/HANDLE/boot; nothing of the server is deeper.
constexpr int kDeepest = 3;

Result<void> own_files(int directory, uid_t uid, gid_t gid, int depth) {
  for (const std::string& name : TRY(sys::names_in(directory))) {
    // By its descriptor from here on: the name may be another file's at any time.
    Fd file(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info{};
    if (!file.valid() || ::fstat(file.get(), &info) < 0) continue;
    const bool whole_tree = S_ISDIR(info.st_mode) && depth < kDeepest;
    if (info.st_uid != uid || info.st_gid != gid) {
      const bool one_name = (S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode)) && info.st_nlink == 1;
      if (!whole_tree && !one_name) {
        log::warn("left alone beside the state database", {{"name", name}});
        continue;
      }
      if (::fchownat(file.get(), "", uid, gid, AT_EMPTY_PATH) < 0)
        return fail_errno("give " + name + " to the service's user");
      if (depth == 0)
        log::info("the service's user has changed; the state database is now its own", {{"name", name}});
    }
    if (whole_tree) {
      Fd inner = TRY(open_at(file.get(), ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      TRY(own_files(inner.get(), uid, gid, depth + 1));
    }
  }
  return {};
}

}  // namespace

Result<void> own_database_files(int directory, uid_t uid, gid_t gid) {
  return own_files(directory, uid, gid, 0);
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
