#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;

// inotify instances, queued signals, message queues, locked memory: each user has so many, and what a user of
// a namespace takes is taken from the namespace's owner as well. An owner who is nobody in here is shared
// with others, the host's root above all: whoever takes that user's last one takes it from all of them.
void run(Attempts& a, Args) {
  File space = ::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (!space.ok() || ::fstat(space.fd(), &about) < 0) return void(a.call("open", "/proc/self/ns/user", -1));
  if (about.st_ino == kInitialUserNamespace)
    return a.got("what is taken here is taken from the host's own users");
  uid_t owner = 0;
  if (::ioctl(space.fd(), NS_GET_OWNER_UID, &owner) < 0)
    return void(a.call("ioctl(2)", "NS_GET_OWNER_UID", -1));
  if (owner != 0)
    return a.got("what is taken here is taken from a user outside, who owns the user namespace");
  a.stopped("the user namespace belongs to its own root, who alone is charged");
}

}  // namespace

extern const Probe probe_kernel_pools = {
    "kernel_pools", "take inotify instances, queued signals and message queues from users outside", nullptr,
    run};

}  // namespace osb::probe
