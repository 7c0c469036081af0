#include <linux/mount.h>

#include "tools.h"

namespace osb::probe {
namespace {

int open_call(long number, auto... args) { return static_cast<int>(::syscall(number, args...)); }

void run(Attempts& a, Args) {
  Scratch scratch;
  for (const char* type : {"tmpfs", "proc", "overlay", "cgroup2"}) {
    File context = open_call(SYS_fsopen, type, FSOPEN_CLOEXEC);
    if (!a.call("fsopen(2)", type, context.fd())) continue;
    ::syscall(SYS_fsconfig, context.fd(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
    File made = open_call(SYS_fsmount, context.fd(), FSMOUNT_CLOEXEC, 0);
    a.call("fsmount(2)", type, made.fd());
  }
  File picked = open_call(SYS_fspick, AT_FDCWD, "/", FSPICK_CLOEXEC);
  a.call("fspick(2)", "/", picked.fd());
  for (const char* path : {"/", "/proc", "/dev"}) {
    File copy = open_call(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    a.call("open_tree(2)", path, copy.fd());
  }
  mount_attr clear = {};
  clear.attr_clr = MOUNT_ATTR_NODIRATIME;
  File copy =
      open_call(SYS_open_tree_attr, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC, &clear, sizeof clear);
  a.call("open_tree_attr(2)", "/", copy.fd());
  a.call("mount_setattr(2)", "/", ::syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &clear, sizeof clear));
  if (scratch.ok() && a.call("move_mount(2)", "/proc",
                             ::syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, scratch.path(), 0)))
    ::syscall(SYS_move_mount, AT_FDCWD, scratch.path(), AT_FDCWD, "/proc", 0);
}

}  // namespace

extern const Probe probe_mount_api = {
    "mount_api", "mount with the newer calls (fsopen, open_tree, move_mount, mount_setattr)", nullptr, run};

}  // namespace osb::probe
