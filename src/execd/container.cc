#include "execd/container.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/strings.h"
#include "sys/descriptors.h"

namespace osb::execd {
namespace {

constexpr int kFirst = 3, kAside = 64;
constexpr int kPatience = 30;  // seconds; the server is there before the container starts
constexpr char kGoOn = 'g';

Result<Fd> connect_once(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(Code::invalid_argument, "the path is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("socket");
  timeval limit{kPatience, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return fail_errno("connect");
  return fd;
}

// Name by name and without links: a link of the image could lead around what was mounted to a directory that
// is as expected. Older engines refuse openat2 to containers.
enum class Missing { an_error, made };

Result<Fd> open_part(int parent, const std::string& name, Missing missing) {
  auto opened = open_at(parent, name, O_PATH | O_NOFOLLOW);
  if (opened || missing == Missing::an_error || opened.error().sys_errno != ENOENT) return opened;
  if (::mkdirat(parent, name.c_str(), 0755) < 0 && errno != EEXIST) return fail_errno("mkdir " + name);
  return open_at(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

Result<struct statx> look_at(const std::string& path, Missing missing = Missing::an_error) {
  Fd at = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  for (std::string_view part : split(path, '/')) {
    if (part.empty()) continue;
    if (part == "..") return fail_errno(path, ELOOP);
    at = TRY(open_part(at.get(), std::string(part), missing));
  }
  struct statx info{};
  if (::statx(at.get(), "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, &info) < 0)
    return fail_errno("look at " + path);
  // Parts of volumes are directories; what the engine mounts may be a file.
  bool is_file = S_ISREG(info.stx_mode) && missing == Missing::an_error;
  if (!S_ISDIR(info.stx_mode) && !is_file) return fail_errno(path, ENOTDIR);
  return info;
}

std::string to_line(const Result<struct statx>& found) {
  if (!found) return "0 " + std::to_string(found.error().sys_errno) + "\n";
  return std::to_string(makedev(found->stx_dev_major, found->stx_dev_minor)) + " " +
         std::to_string(found->stx_ino) + "\n";
}

std::string what_is_at(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) {
    auto found = look_at(path);
    if (found && !(found->stx_attributes & STATX_ATTR_MOUNT_ROOT)) found = fail_errno(path, EXDEV);
    out += to_line(found);
  }
  return out;
}

// Nothing is done before the server has seen that these are the right ones.
Result<void> be_approved(int socket, const std::vector<std::string>& shown) {
  TRY(write_all(socket, what_is_at(shown)));
  char word = 0;
  ssize_t got = ::recv(socket, &word, 1, 0);
  if (got == 1 && word == kGoOn) return {};
  return fail(Code::permission_denied, "the server does not want the directories that are mounted here");
}

}  // namespace

std::string find_parts(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) out += to_line(look_at(path, Missing::made));
  return out;
}

Result<void> take_listeners(const std::string& path, const std::vector<std::string>& shown) {
  Fd socket = TRY(connect_once(path));
  char byte = 0;
  std::vector<Fd> taken;
  size_t got = TRY(sys::receive_with_descriptors(socket.get(), {&byte, 1}, taken));
  if (got != 1 || taken.size() != kContainerListeners)
    return fail(Code::corrupt, "these are not the listeners");
  if (!shown.empty()) TRY(be_approved(socket.get(), shown));
  // First out of the way of each other, then to their places.
  std::vector<Fd> aside;
  for (Fd& fd : taken) {
    int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kAside);
    if (copy < 0) return fail_errno("dup");
    aside.emplace_back(copy);
  }
  taken.clear();
  socket.reset();
  for (int i = 0; i < kContainerListeners; ++i) {
    if (::dup3(aside[static_cast<size_t>(i)].get(), kFirst + i, O_CLOEXEC) < 0) return fail_errno("dup3");
  }
  return {};
}

}  // namespace osb::execd
