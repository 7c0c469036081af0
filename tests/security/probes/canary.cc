#include <sys/stat.h>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr int kClimb = 40;

void try_route(Attempts& a, const std::string& route, const std::string& path, int at = AT_FDCWD) {
  File file = ::openat(at, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.ok()) {
    char bytes[256];
    const ssize_t n = ::read(file.fd(), bytes, sizeof bytes);
    a.got("opened " + path + " by " + route + ", " + std::to_string(n) + " bytes read");
    return;
  }
  const Answer refused(-1);
  struct stat about;
  // A name that can be seen but not read is outside the root all the same.
  if (::fstatat(at, path.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0)
    a.got("sees " + path + " by " + route + " though it cannot read it");
  else
    a.call("open", route, refused);
}

std::string climbing(const std::string& path) {
  std::string up;
  for (int i = 0; i < kClimb; ++i) up += "../";
  return up + path.substr(path.find_first_not_of('/'));
}

void run(Attempts& a, Args paths) {
  if (paths.empty()) return a.skipped("no path of a canary file was given");
  for (const std::string path : paths) {
    if (path.find_first_not_of('/') == std::string::npos) continue;
    try_route(a, "its path", path);
    try_route(a, "the working directory", climbing(path));
    for (const std::string& pid : processes()) {
      const std::string proc = "/proc/" + pid;
      const std::string who = pid == "1" ? "/proc/1" : "/proc/*";
      try_route(a, who + "/root", proc + "/root" + path);
      try_route(a, who + "/cwd", proc + "/cwd/" + climbing(path));
      for (const std::string& fd : list_directory(proc + "/fd")) {
        struct stat about;
        const std::string link = proc + "/fd/" + fd;
        if (::stat(link.c_str(), &about) < 0 || !S_ISDIR(about.st_mode)) continue;
        try_route(a, who + "/fd", link + "/" + climbing(path));
      }
    }
    for (int fd = 0; fd < 1024; ++fd) {
      struct stat about;
      if (::fstat(fd, &about) == 0 && S_ISDIR(about.st_mode))
        try_route(a, "an inherited directory", climbing(path), fd);
    }
  }
}

}  // namespace

extern const Probe probe_canary = {
    "canary", "read the host's files given as arguments, by path and by every detour", nullptr, run};

}  // namespace osb::probe
