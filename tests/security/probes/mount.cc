#include <sys/mount.h>

#include "tools.h"

namespace osb::probe {
namespace {

struct Variant {
  const char *name, *source, *type;
  unsigned long flags;
  const char* options;
};
constexpr Variant kVariants[] = {
    {"tmpfs", "none", "tmpfs", 0, nullptr},
    {"proc", "proc", "proc", 0, nullptr},
    {"sysfs", "sysfs", "sysfs", 0, nullptr},
    {"devpts", "devpts", "devpts", 0, nullptr},
    {"mqueue", "mqueue", "mqueue", 0, nullptr},
    {"bind of /", "/", nullptr, MS_BIND, nullptr},
    {"recursive bind of /proc", "/proc", nullptr, MS_BIND | MS_REC, nullptr},
    {"overlay", "overlay", "overlay", 0, "lowerdir=/usr:/etc"},
    {"devtmpfs", "dev", "devtmpfs", 0, nullptr},
    {"debugfs", "none", "debugfs", 0, nullptr},
    {"tracefs", "none", "tracefs", 0, nullptr},
    {"bpf", "none", "bpf", 0, nullptr},
    {"binfmt_misc", "none", "binfmt_misc", 0, nullptr},
    {"securityfs", "none", "securityfs", 0, nullptr},
};

void run(Attempts& a, Args) {
  Scratch scratch;
  if (!scratch.ok()) return a.skipped("no directory to work in");
  for (const Variant& v : kVariants)
    if (a.call("mount(2)", v.name, ::mount(v.source, scratch.path(), v.type, v.flags, v.options)))
      ::umount2(scratch.path(), MNT_DETACH);
  // Changes of what is mounted already: propagation first, then flags.
  a.call("mount(2)", "propagation of /", ::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr));
  a.call("mount(2)", "remount of /", ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr));
  if (a.call("mount(2)", "move of /proc", ::mount("/proc", scratch.path(), nullptr, MS_MOVE, nullptr)))
    ::mount(scratch.path(), "/proc", nullptr, MS_MOVE, nullptr);
}

}  // namespace

extern const Probe probe_mount = {"mount", "mount file systems with mount(2)", nullptr, run};

}  // namespace osb::probe
