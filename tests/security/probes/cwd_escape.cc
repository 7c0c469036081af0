#include <sys/stat.h>

#include "tools.h"

namespace osb::probe {
namespace {

bool same(const struct stat& x, const struct stat& y) { return x.st_dev == y.st_dev && x.st_ino == y.st_ino; }

// Climbs from the current directory as far as it goes; a process inside its root ends there.
bool outside_root(const struct stat& root) {
  struct stat here;
  for (int i = 0; i < 64; ++i) {
    if (::stat(".", &here) == 0 && same(here, root)) return false;
    if (::chdir("..") < 0) break;
  }
  return ::stat(".", &here) == 0 && !same(here, root);
}

// The class of CVE-2024-21626: a working directory, or a descriptor left open in the child, that lies
// outside.
void run(Attempts& a, Args) {
  struct stat root;
  if (::stat("/", &root) < 0) return a.skipped("cannot stat /");
  char where[4096];
  if (::syscall(SYS_getcwd, where, sizeof where) > 0 && std::string_view(where).starts_with("(unreachable)"))
    a.got(std::string("the working directory is outside the root: ") + where);
  File start = ::open(".", O_PATH | O_CLOEXEC);
  if (outside_root(root)) a.got("climbing from the working directory leaves the root");
  for (int fd = 0; fd < 1024; ++fd) {
    if (fd == start.fd()) continue;
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::chdir(link.c_str()) < 0 && ::fchdir(fd) < 0) continue;
    if (outside_root(root)) a.got("descriptor " + std::to_string(fd) + " leads outside the root");
  }
  a.stopped("every directory at hand lies inside the root");
}

}  // namespace

extern const Probe probe_cwd_escape = {
    "cwd_escape",
    "leave the root through the working directory or a leaked descriptor (class of CVE-2024-21626)", nullptr,
    run};

}  // namespace osb::probe
