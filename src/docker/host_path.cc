#include "docker/host_path.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace osb::docker {
namespace {

Result<FileId> id_of(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return fail_errno("look at a directory");
  return FileId{info.st_dev, info.st_ino};
}

bool is_at_or_below(std::string_view path, std::string_view top) {
  return path == top || (path.starts_with(top) && path.substr(top.size()).starts_with('/'));
}

// Where it really is. What only its owner may enter has a name all the same.
Result<std::string> place_of(int fd) {
  char path[PATH_MAX];
  ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  if (length < 0 || static_cast<size_t>(length) == sizeof path) return fail_errno("look at a directory");
  return std::string(path, static_cast<size_t>(length));
}

// What a link leads to, and how it is called really: followed once, to see where that is, and then opened
// again by that name, beneath the list and without any link, so that nobody can put another one in between.
Result<Fd> open_led(const std::vector<std::string>& allowed, int parent, const std::string& name) {
  auto led = open_at(parent, name, O_PATH);
  if (!led) return fail(Code::invalid_argument, "a symbolic link on the way leads nowhere");
  std::string place = TRY(place_of(led->get()));
  for (const std::string& root : allowed) {
    Fd top = TRY(open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY));
    std::string top_place = TRY(place_of(top.get()));
    if (place == top_place) return top;
    if (!is_at_or_below(place, top_place)) continue;
    return open_beneath(top.get(), place.substr(top_place.size() + 1), O_PATH | O_NOFOLLOW);
  }
  return fail(Code::invalid_argument,
              "a symbolic link on the way leads out of the directories of storage.allowed_host_paths");
}

Result<mode_t> kind_of(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return fail_errno("look at a directory");
  return info.st_mode & S_IFMT;
}

Result<Fd> open_part(const std::vector<std::string>& allowed, int parent, const std::string& name,
                     Missing missing) {
  auto opened = open_beneath(parent, name, O_PATH | O_NOFOLLOW);
  if (!opened && opened.error().code == Code::not_found) {
    if (missing == Missing::told) return fail(Code::not_found, "there is no such directory");
    if (::mkdirat(parent, name.c_str(), 0755) < 0 && errno != EEXIST)
      return fail(Code::not_found,
                  "there is no such directory, and this server's user may not make it; make it on the host");
    opened = open_beneath(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  }
  if (!opened && opened.error().sys_errno == ENOTDIR)
    return fail(Code::invalid_argument, "a file is on the way; only directories have something below");
  // Where the kernel's own word for a link comes first.
  bool is_link = opened ? TRY(kind_of(opened->get())) == S_IFLNK : opened.error().sys_errno == ELOOP;
  return is_link ? open_led(allowed, parent, name) : std::move(opened);
}

}  // namespace

std::string to_line(const FileId& id) {
  return std::to_string(id.device) + " " + std::to_string(id.inode) + "\n";
}

std::string why_not_shown(std::string_view seen, std::string_view wanted) {
  auto is = split(seen, '\n'), expected = split(wanted, '\n');
  size_t i = 0;
  while (i < is.size() && i < expected.size() && is[i] == expected[i]) ++i;
  std::string_view line = i < is.size() ? is[i] : std::string_view();
  auto reason = line.starts_with("0 ") ? parse_number<int>(line.substr(2)) : std::nullopt;
  switch (reason.value_or(0)) {
    case ELOOP:
    case ENOTDIR:
      return "refused: a symbolic link of the image is on the way to the mountPath; name the directory "
             "itself";
    case EACCES:
      return "refused: the image's user may not look at the mountPath, so what is mounted there is not "
             "known; "
             "choose one that this user can reach";
    case EXDEV:
      return "refused: the engine has mounted the directory somewhere else than at the mountPath";
    default:
      return "refused: another directory was in its place when the engine mounted it, or the engine sees "
             "other files than this server";
  }
}

Result<FileId> look_up_host_path(const std::vector<std::string>& allowed, const std::string& state_dir,
                                 const std::string& path, Missing missing) {
  for (const std::string& root : allowed) {
    if (!is_at_or_below(path, root)) continue;
    // The root itself is the operator's word and may be a link; what lies below may be somebody else's.
    Fd at = TRY(open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY));
    Fd state = TRY(open_at(AT_FDCWD, state_dir, O_PATH | O_DIRECTORY));
    std::string here = TRY(place_of(at.get())), own = TRY(place_of(state.get()));
    if (path != root) {
      for (std::string_view part : split(path.substr(root.size() + 1), '/')) {
        // Looked at before a missing one is made: nothing is made among the files of the service.
        if (is_at_or_below(here, own)) break;
        at = TRY(open_part(allowed, at.get(), std::string(part), missing));
        here = TRY(place_of(at.get()));
      }
    }
    if (is_at_or_below(here, own) || is_at_or_below(own, here))
      return fail(Code::permission_denied, "refused: the files of the service are in there");
    mode_t kind = TRY(kind_of(at.get()));
    if (kind != S_IFDIR && kind != S_IFREG)
      return fail(Code::invalid_argument, "it is neither a directory nor an ordinary file");
    return id_of(at.get());
  }
  return fail(Code::permission_denied, "refused: not below a directory of storage.allowed_host_paths");
}

}  // namespace osb::docker
