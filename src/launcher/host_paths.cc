#include "launcher/host_paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "launcher/checks.h"
#include "launcher/volume_ids.h"

namespace osb::launcher {
namespace {

constexpr int kDeepest = 4096;
constexpr int kMostTries = 128;

Result<struct stat> look_at(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return fail_errno("look at a directory");
  return info;
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Whether `directory` is `top` or lies somewhere below it.
Result<bool> is_within(int directory, const struct stat& top) {
  Fd at = TRY(open_at(directory, ".", O_PATH | O_DIRECTORY));
  struct stat here = TRY(look_at(at.get()));
  for (int depth = 0; depth < kDeepest; ++depth) {
    if (is_same(here, top)) return true;
    at = TRY(open_at(at.get(), "..", O_PATH | O_DIRECTORY));
    struct stat above = TRY(look_at(at.get()));
    if (is_same(above, here)) return false;
    here = above;
  }
  return fail(Code::internal, "directories that never end");
}

std::unexpected<Error> files_of_the_service() {
  return fail(Code::permission_denied, "refused: the files of the service are in there");
}

// With the rights of who owns the place: a sandbox may be at work in it, and could put something else under a
// name between two calls.
Result<void> make_directory(const Settings& settings, int parent, const std::string& name) {
  Maker maker = maker_in(TRY(look_at(parent)));
  // Without root there is one user; the kernel knows what he may do.
  bool as_ourselves = settings.rootless || maker.by_root;
  int made = 0;
  {
    Cleanup back;
    if (!as_ourselves) {
      ::setfsgid(maker.gid);
      ::setfsuid(maker.uid);
      back.push([] {
        ::setfsuid(0);
        ::setfsgid(0);
      });
    }
    made = check_call(::mkdirat(parent, name.c_str(), 0755));
  }
  if (made < 0 && made != -EEXIST) return fail_errno("make a directory", -made);
  // Nobody could have taken its name away but root, or a sandbox that writes here as root: what that could
  // put in its place is its own, and loses its owner.
  if (made == 0 && as_ourselves && !settings.rootless &&
      ::fchownat(parent, name.c_str(), maker.uid, maker.gid, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("give a directory away");
  return {};
}

std::unexpected<Error> not_a_way(int error) {
  switch (error) {
    case ENOENT:
      return fail(Code::not_found, "there is no such directory");
    case ENOTDIR:
      return fail(Code::invalid_argument, "a file is on the way; only directories are used");
    case EXDEV:
      return fail(Code::invalid_argument,
                  "a symbolic link on the way leads out, or begins with a slash; those that are relative and "
                  "stay inside are followed");
    case ELOOP:
      return fail(Code::invalid_argument, "a symbolic link on the way leads nowhere, or round in circles");
    default:
      return fail_errno("open a directory", error);
  }
}

// A directory below another. The kernel follows links, none of which gets it out of `top`, and what it has
// found is open: nobody puts something else in its place.
Result<Fd> resolve(int top, const std::string& path, uint64_t more_flags = 0) {
  struct open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC | more_flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something was renamed meanwhile, and it cannot be told whether ".." still led inside.
  for (int tries = 0;; ++tries) {
    long fd = ::syscall(SYS_openat2, top, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN || tries == kMostTries) return not_a_way(errno);
  }
}

// What was just made, and nothing else under its name.
Result<Fd> open_made(int parent, const std::string& name) {
  auto opened = resolve(parent, name, O_NOFOLLOW);
  // With O_PATH a link is opened itself, and is no directory.
  if (!opened && opened.error().code == Code::invalid_argument) return not_a_way(ELOOP);
  return opened;
}

// What is missing is made, below what is there. Nothing is made within `state`.
Result<Fd> make_way(const Settings& settings, Fd top, const std::string& path, const struct stat* state) {
  Fd at = TRY(open_at(top.get(), ".", O_PATH | O_DIRECTORY));
  std::string there;
  bool making = false;
  for (std::string_view part : split(path, '/')) {
    std::string name(part);
    there.append(there.empty() ? "" : "/").append(part);
    auto next = making ? open_made(at.get(), name) : resolve(top.get(), there);
    if (!next && next.error().code == Code::not_found) {
      making = true;
      if (state != nullptr && TRY(is_within(at.get(), *state))) return files_of_the_service();
      TRY(make_directory(settings, at.get(), name));
      next = open_made(at.get(), name);
    }
    at = TRY(std::move(next));
  }
  return at;
}

Result<Fd> walk(const Settings& settings, Fd top, const std::string& path, Missing missing,
                const struct stat* state) {
  auto found = resolve(top.get(), path);
  if (found || missing == Missing::refused || found.error().code != Code::not_found) return found;
  return make_way(settings, std::move(top), path, state);
}

}  // namespace

Result<Fd> open_below(const Settings& settings, Fd top, std::string_view path, Missing missing) {
  return walk(settings, std::move(top), std::string(path), missing, nullptr);
}

Result<Fd> open_host_path(const Settings& settings, const std::string& path, Missing missing) {
  for (const std::string& root : settings.shared_paths) {
    if (!is_at_or_below(path, root)) continue;
    // The root itself is the operator's word and may be a symlink; what lies below may be somebody else's.
    Fd top = TRY(open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY));
    Fd state = TRY(open_at(AT_FDCWD, settings.state_dir, O_PATH | O_DIRECTORY));
    struct stat state_info = TRY(look_at(state.get()));
    Fd opened = std::move(top);
    if (path != root)
      opened = TRY(walk(settings, std::move(opened), path.substr(root.size() + 1), missing, &state_info));
    // Neither what the service keeps, nor something that has this in it.
    if (TRY(is_within(opened.get(), state_info)) || TRY(is_within(state.get(), TRY(look_at(opened.get())))))
      return files_of_the_service();
    return opened;
  }
  return fail(Code::permission_denied, "refused: not below a directory of storage.allowed_host_paths");
}

}  // namespace osb::launcher
