#include <sys/stat.h>

#include "tools.h"

namespace osb::probe {
namespace {

// The oldest one: a second chroot while the working directory stays above it, then climb. Works out of a
// plain chroot; out of a pivoted root it only leads back to that root.
long break_out(const Scratch& scratch) {
  struct stat before, after;
  if (::stat("/", &before) < 0) return -1;
  File top = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!top.ok() || ::chroot(scratch.path()) < 0) return -1;
  if (::fchdir(top.fd()) < 0) return -1;
  for (int i = 0; i < 64; ++i)
    if (::chdir("..") < 0) return -1;
  if (::chroot(".") < 0 || ::stat("/", &after) < 0) return -1;
  if (after.st_ino == before.st_ino && after.st_dev == before.st_dev) return errno = ENOTEMPTY, -1;
  return 0;
}

void run(Attempts& a, Args) {
  Scratch scratch;
  if (!scratch.ok()) return a.skipped("no directory to work in");
  const Answer answer = in_child([&] { return break_out(scratch); });
  if (!answer.worked() && answer.error == ENOTEMPTY)
    a.stopped("the root is the mount namespace's own: climbing out of a chroot ends in it");
  else
    a.call("chroot(2)", "and climb", answer);
}

}  // namespace

extern const Probe probe_chroot_escape = {"chroot_escape", "climb out of the root by a second chroot",
                                          nullptr, run};

}  // namespace osb::probe
