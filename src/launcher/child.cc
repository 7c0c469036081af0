#include "launcher/child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iterator>

#include "launcher/rootless.h"
#include "launcher/settings.h"
#include "sys/caps.h"
#include "sys/mount.h"
#include "sys/seccomp.h"
#include "sys/weakening.h"

namespace osb::launcher {
namespace {

constexpr uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

int check_call(long value) { return value < 0 ? -errno : static_cast<int>(value); }

// State of the recipe while the new root grows.
struct Builder {
  const ChildOrder& order;
  int root = -1;  // the new root, once its overlay is attached
  int lowers_used = 0;
  int empty_file = -1, empty_directory = -1;  // what masks are copies of

  // A path of the new root, with the image's own symlinks resolved inside it, as if it were already "/".
  int open_in_root(const char* path, int flags) const {
    struct open_how how{};
    how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    return check_call(::syscall(SYS_openat2, root, path, &how, sizeof how));
  }

  // Every missing directory of `path` is made, owned by the sandbox's root.
  int ensure_directory(const char* path) const {
    char part[4096];
    for (size_t i = 1;; ++i) {
      if (path[i] != '/' && path[i] != '\0') continue;
      if (i >= sizeof part) return -ENAMETOOLONG;
      for (size_t k = 0; k < i; ++k) part[k] = path[k];
      part[i] = '\0';
      int there = open_in_root(part, O_PATH);
      if (there >= 0) {
        ::close(there);
      } else if (there == -ENOENT) {
        size_t slash = i;
        while (part[slash - 1] != '/') --slash;
        part[slash - 1] = '\0';
        int parent = slash == 1 ? ::dup(root) : open_in_root(part, O_PATH | O_DIRECTORY);
        if (parent < 0) return parent;
        int made = check_call(::mkdirat(parent, part + slash, 0755));
        if (made == 0)
          made = check_call(
              ::fchownat(parent, part + slash, order.first_id, order.first_id, AT_SYMLINK_NOFOLLOW));
        ::close(parent);
        if (made < 0) return made;
      } else {
        return there;
      }
      if (path[i] == '\0') return 0;
    }
  }

  // Attaches a detached mount at a directory of the new root, and closes it.
  int place(int mount, const char* target) const {
    if (mount < 0) return mount;
    int at = open_in_root(target, O_PATH | O_DIRECTORY);
    if (at == -ENOENT) {
      int made = ensure_directory(target);
      at = made < 0 ? made : open_in_root(target, O_PATH | O_DIRECTORY);
    }
    int status = at < 0 ? at : sys::attach_mount_to(mount, at);
    if (at >= 0) ::close(at);
    ::close(mount);
    return status;
  }

  // Not possible without root, and not needed: ids inside are then those of our own user namespace.
  int map_ids(int mount) const { return order.rootless ? 0 : sys::idmap_mount(mount, order.user_namespace); }

  int overlay(const ReadyStep& ready) {
    const Step& step = *ready.step;
    if (ready.mounted) return add_root(ready.sources[0], step);
    size_t count = step.lowers.size();
    // The layers become visible below the lowers directory, in this mount namespace only, with the sandbox's
    // ids.
    char names[256][16];
    sys::MountOption options[256 + 2 + std::size(sys::kUserOverlay)];
    int used = 0;
    if (count > 256) return -E2BIG;
    for (size_t i = 0; i < count; ++i) {
      std::snprintf(names[i], sizeof names[i], "%s/%d", state::kLowers, lowers_used++);
      int layer = ready.sources[i];
      int status = map_ids(layer);
      if (status == 0) status = sys::attach_mount(layer, AT_FDCWD, names[i]);
      if (status < 0) return status;
      options[used++] = {count == 1 ? "lowerdir" : "lowerdir+", names[i]};
    }
    options[used++] = {"upperdir", ready.upper};
    options[used++] = {"workdir", ready.work};
    auto add = [&](const auto& more) {
      for (const sys::MountOption& option : more) options[used++] = option;
    };
    if (order.rootless)
      add(sys::kUserOverlay);
    else
      add(sys::kPlainOverlay);
    // The directory of the layers is free for this: their names have been looked up by the time it is
    // covered.
    bool at_once = ready.layers_at_once && count > 1;
    int mount = at_once ? sys::mount_overlay_at_once(state::kLowers, options, used)
                        : sys::mount_filesystem("overlay", options, used, kQuiet);
    return add_root(mount, step);
  }

  // The first overlay is the new root, others lie in it.
  int add_root(int mount, const Step& step) {
    if (mount < 0) return mount;
    if (root >= 0) return place(mount, step.target.c_str());
    root = mount;
    return sys::attach_mount(mount, AT_FDCWD, order.nothing >= 0 ? "/" : state::kMount);
  }

  int bind(const ReadyStep& ready) const {
    int mount = ready.sources[0];
    int status = map_ids(mount);
    if (status == 0) status = sys::restrict_mount(mount, kQuiet | MOUNT_ATTR_RDONLY);
    if (status < 0) return status;
    return place(mount, ready.step->target.c_str());
  }

  int devices(const char* target) const {
    char owner[16], tty[16];
    std::snprintf(owner, sizeof owner, "%u", order.first_id);
    std::snprintf(tty, sizeof tty, "%u",
                  order.first_id + (order.rootless ? 0 : 5));  // by Debian's numbering and most others'
    // With room for /dev/shm, which is a part of it: every file system more makes others slower to take
    // apart.
    const sys::MountOption options[] = {
        {"mode", "0755"}, {"size", "67108864"}, {"nr_inodes", "16384"}, {"uid", owner}, {"gid", owner}};
    int mount = sys::mount_filesystem("tmpfs", options, 5, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    int status = place(mount, target);
    if (status < 0) return status;
    int dev = open_in_root(target, O_RDONLY | O_DIRECTORY);
    if (dev < 0) return dev;
    static constexpr struct {
      const char* name;
      unsigned major, minor;
    } kNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                  {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
    static constexpr struct {
      const char *name, *to;
    } kLinks[] = {{"fd", "/proc/self/fd"},
                  {"stdin", "/proc/self/fd/0"},
                  {"stdout", "/proc/self/fd/1"},
                  {"stderr", "/proc/self/fd/2"},
                  {"ptmx", "pts/ptmx"}};
    uint32_t id = order.first_id;
    // The umask is cleared by run_child. Nodes are made here, while this process may; the sandbox itself
    // never can.
    for (const auto& node : kNodes) {
      if (order.rootless) {
        status = bind_host_device(dev, node.name);
        if (status < 0) return status;
        continue;
      }
      status = check_call(::mknodat(dev, node.name, S_IFCHR | 0666, makedev(node.major, node.minor)));
      if (status == 0) status = check_call(::fchownat(dev, node.name, id, id, AT_SYMLINK_NOFOLLOW));
      if (status < 0) return status;
    }
    for (const auto& link : kLinks) {
      status = check_call(::symlinkat(link.to, dev, link.name));
      if (status < 0) return status;
    }
    if (::mkdirat(dev, "pts", 0755) < 0 || ::mkdirat(dev, "shm", 01777) < 0 ||
        ::fchownat(dev, "shm", id, id, AT_SYMLINK_NOFOLLOW) < 0)
      return -errno;
    const sys::MountOption pts[] = {
        {"newinstance", nullptr}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", tty}};
    mount = sys::mount_filesystem("devpts", pts, 4, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (mount < 0) return mount;
    status = sys::attach_mount(mount, dev, "pts");
    ::close(mount);
    if (status < 0) return status;
    mount = sys::clone_mount(dev, "shm");
    if (mount < 0) return mount;
    status = sys::restrict_mount(mount, kQuiet | MOUNT_ATTR_NOEXEC);
    if (status == 0) status = sys::attach_mount(mount, dev, "shm");
    ::close(mount);
    ::close(dev);
    return status;
  }

  int cover_of(bool directory) {
    if (!directory) {
      if (empty_file < 0) empty_file = open_in_root("/dev/null", O_PATH);
      return empty_file < 0 ? empty_file : sys::clone_mount(empty_file, "");
    }
    if (empty_directory >= 0) return sys::clone_mount(empty_directory, "");
    const sys::MountOption options[] = {{"mode", "0555"}, {"size", "4096"}, {"nr_inodes", "2"}};
    return sys::mount_filesystem("tmpfs", options, 3, kQuiet | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
  }

  // Covers by descriptor: what is looked at and what is covered are the same object.
  int mask(const char* target) {
    int at = open_in_root(target, O_PATH);
    if (at == -ENOENT) return 0;
    if (at < 0) return at;
    struct stat info{};
    int status = check_call(::fstat(at, &info));
    bool directory = S_ISDIR(info.st_mode);
    int cover = status < 0 ? status : cover_of(directory);
    status = cover < 0 ? cover : sys::attach_mount_to(cover, at);
    // Once it is attached, it can be copied on every kernel.
    if (status == 0 && directory && empty_directory < 0)
      empty_directory = cover;
    else if (cover >= 0)
      ::close(cover);
    ::close(at);
    return status;
  }

  int read_only(const char* target) const {
    int at = open_in_root(target, O_PATH);
    if (at == -ENOENT) return 0;
    if (at < 0) return at;
    int copy = sys::clone_mount(at, "");
    int status = copy < 0 ? copy : sys::restrict_mount(copy, kQuiet | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
    if (status == 0) status = sys::attach_mount_to(copy, at);
    if (copy >= 0) ::close(copy);
    ::close(at);
    return status;
  }

  int scratch(const char* target) const {
    char owner[16];
    std::snprintf(owner, sizeof owner, "%u", order.first_id);
    const sys::MountOption options[] = {
        {"mode", "1777"}, {"size", "67108864"}, {"uid", owner}, {"gid", owner}};
    return place(sys::mount_filesystem("tmpfs", options, 4, kQuiet), target);
  }

  int seal(const char* target) const {
    int at = open_in_root(target, O_PATH | O_DIRECTORY);
    if (at < 0) return at;
    int status = sys::seal_mount(at);
    ::close(at);
    return status;
  }

  int show(const LimitView& view) const {
    int at = open_in_root(view.target, O_PATH);
    if (at == -ENOENT) return 0;
    if (at < 0) return at;
    int status = sys::restrict_mount(view.source, kQuiet | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
    if (status == 0) status = sys::attach_mount_to(view.source, at);
    ::close(at);
    return status;
  }

  // /sys/fs/cgroup with a directory per hierarchy, as hosts with version 1 have it.
  int cgroup_directory() const {
    constexpr char kTarget[] = "/sys/fs/cgroup";
    const sys::MountOption options[] = {{"mode", "0755"}, {"size", "4096"}, {"nr_inodes", "16"}};
    int mount = sys::mount_filesystem("tmpfs", options, 3, kQuiet | MOUNT_ATTR_NOEXEC);
    if (mount < 0) return mount;
    int status = 0;
    for (size_t i = 0; i < order.cgroup_name_count && status == 0; ++i)
      status = check_call(::mkdirat(mount, order.cgroup_names[i], 0755));
    if (status == 0) status = sys::restrict_mount(mount, MOUNT_ATTR_RDONLY);
    if (status < 0) {
      ::close(mount);
      return status;
    }
    return place(mount, kTarget);
  }

  int show_limits() const {
    int status = order.cgroup_name_count > 0 ? cgroup_directory() : 0;
    for (size_t i = 0; i < order.view_count && status == 0; ++i) status = show(order.views[i]);
    return status;
  }

  int run(const ReadyStep& ready) {
    const Step& step = *ready.step;
    const char* target = step.target.c_str();
    constexpr uint64_t kKernel = kQuiet | MOUNT_ATTR_NOEXEC;
    switch (step.kind) {
      case Step::Kind::overlay:
        return overlay(ready);
      case Step::Kind::bind:
        return bind(ready);
      case Step::Kind::proc:
        return place(sys::mount_filesystem("proc", nullptr, 0, kKernel), target);
      case Step::Kind::sysfs:
        if (ready.mounted) return place(ready.sources[0], target);
        return place(sys::mount_filesystem("sysfs", nullptr, 0, kKernel | MOUNT_ATTR_RDONLY), target);
      case Step::Kind::devices:
        return devices(target);
      case Step::Kind::mask:
        return mask(target);
      case Step::Kind::read_only:
        return read_only(target);
      case Step::Kind::hostname:
        return check_call(::sethostname(step.name.data(), step.name.size()));
      case Step::Kind::scratch:
        return scratch(target);
      case Step::Kind::seal:
        return seal(target);
      case Step::Kind::show_limits:
        return show_limits();
    }
    return -EINVAL;
  }
};

[[noreturn]] void give_up(const ChildOrder& order, uint32_t step, int negative_errno) {
  ChildFailure failure{step, -negative_errno};
  (void)!::write(order.report, &failure, sizeof failure);
  ::_exit(127);
}

void must(const ChildOrder& order, Stage stage, int status) {
  if (status < 0) give_up(order, kFixedStage + static_cast<uint32_t>(stage), status);
}

int join_v1_groups(const ChildOrder& order) {
  for (size_t i = 0; i < order.v1_count; ++i) {
    if (::write(order.v1_procs[i], "0", 1) < 0) return -errno;
  }
  return 0;
}

int start_from_nothing(const ChildOrder& order) {
  if (::setns(order.nothing, CLONE_NEWNS) < 0) return -errno;
  return check_call(::unshare(CLONE_NEWNS));
}

int start_from_the_host(const ChildOrder& order) {
  if (::unshare(CLONE_NEWNS) < 0) return -errno;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return -errno;
  // Names of the host appear in the sandbox's mount table as they are written here: relative ones tell
  // nothing.
  return check_call(::chdir(order.state_dir));
}

int enter(const ChildOrder& order, int root) {
  if (::fchdir(root) < 0) return -errno;
  // Below the new root lies an empty directory that nobody can write to: there is nothing to get rid of.
  if (order.nothing >= 0) return check_call(::chroot("."));
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return -errno;
  // The host's tree now lies on top of the new root; with it go the layers that only the overlay needs.
  if (::umount2(".", MNT_DETACH) < 0) return -errno;
  return check_call(::chdir("/"));
}

int become_sandbox_root(const ChildOrder& order) {
  int groups = check_call(::setgroups(0, nullptr));
  if (order.rootless) groups = sys::tolerate(groups, {EPERM}, kKeptGroups);
  if (groups < 0) return groups;
  if (::setresgid(0, 0, 0) < 0) return -errno;
  return check_call(::setresuid(0, 0, 0));
}

int set_limits(const ChildOrder& order) {
  if (order.cpus && ::sched_setaffinity(0, order.cpu_bytes, static_cast<const cpu_set_t*>(order.cpus)) < 0)
    return -errno;
  if (order.open_files > 0) {
    auto most = static_cast<rlim_t>(order.open_files);
    const struct rlimit files{most, most};
    if (::setrlimit(RLIMIT_NOFILE, &files) < 0) return -errno;
  }
  if (order.processes > 0) {
    auto most = static_cast<rlim_t>(order.processes);
    const struct rlimit processes{most, most};
    if (::setrlimit(RLIMIT_NPROC, &processes) < 0) return -errno;
  }
  // One byte: no core file, and, unlike zero, no core handler of the host either.
  const struct rlimit core{1, 1};
  return check_call(::setrlimit(RLIMIT_CORE, &core));
}

// Descriptors of execd: 0-2 the sandbox's null device, 3 and 4 its listeners. All others close at exec.
int arrange_descriptors(const ChildOrder& order) {
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return -errno;
  // First out of the way of 0-4, then into place; dup2 clears close-on-exec.
  int api = ::fcntl(order.api_listener, F_DUPFD_CLOEXEC, 16),
      control = ::fcntl(order.control_listener, F_DUPFD_CLOEXEC, 16);
  if (api < 0 || control < 0) return -errno;
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(null, fd) < 0) return -errno;
  }
  if (::dup2(api, 3) < 0 || ::dup2(control, 4) < 0) return -errno;
  return check_call(::syscall(SYS_close_range, 5, ~0U, CLOSE_RANGE_CLOEXEC));
}

// Writes the argument that tells execd of it. Without it programs learn the host's size from this one call,
// which protects nothing: a kernel that cannot do it goes on.
bool keep_sysinfo_listener(char* argument, size_t size) {
  int listener = sys::install_sysinfo_listener();
  if (listener < 0) return false;
  std::snprintf(argument, size, "--sysinfo-requests=%d", listener);
  return ::fcntl(listener, F_SETFD, 0) == 0;
}

}  // namespace

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::record:
      return "wait for the record of the sandbox";
    case Stage::cgroup_v1:
      return "join the v1 cgroups";
    case Stage::cgroup_namespace:
      return "make a cgroup namespace";
    case Stage::mounts:
      return "make a mount namespace";
    case Stage::network:
      return "enter the network namespace";
    case Stage::disk:
      return "make a file system of the size of resourceLimits.disk";
    case Stage::root:
      return "enter the new root";
    case Stage::session_keyring:
      return "take a fresh session keyring";
    case Stage::user_namespace:
      return "enter the user namespace";
    case Stage::identity:
      return "become the sandbox's root";
    case Stage::no_new_privs:
      return "set no_new_privs";
    case Stage::capabilities:
      return "drop capabilities";
    case Stage::limits:
      return "set process limits";
    case Stage::descriptors:
      return "arrange descriptors";
    case Stage::seccomp:
      return "install the seccomp program";
    case Stage::exec:
      return "start execd";
  }
  return "unknown stage";
}

void run_child(const ChildOrder& order) {
  // Rights held here: the launcher's (root on the host), in fresh pid, ipc and uts namespaces.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::setsid();
  ::umask(0);
  if (order.rootless) must(order, Stage::record, wait_until_recorded(order.go, order.go_writer));
  must(order, Stage::cgroup_v1, join_v1_groups(order));
  must(order, Stage::cgroup_namespace, check_call(::unshare(CLONE_NEWCGROUP)));
  must(order, Stage::mounts, order.nothing >= 0 ? start_from_nothing(order) : start_from_the_host(order));
  must(order, Stage::network, check_call(::setns(order.network_namespace, CLONE_NEWNET)));
  if (order.disk.bytes > 0) must(order, Stage::disk, make_disk(order.disk));
  Builder builder{order};
  if (order.nothing >= 0) {
    builder.empty_directory = check_call(::open("/", O_PATH | O_CLOEXEC));
    must(order, Stage::mounts, builder.empty_directory);
  }
  for (size_t i = 0; i < order.step_count; ++i) {
    int status = builder.run(order.steps[i]);
    if (status < 0) give_up(order, static_cast<uint32_t>(i), status);
  }
  must(order, Stage::root, enter(order, builder.root));
  must(order, Stage::descriptors, arrange_descriptors(order));
  must(order, Stage::limits, set_limits(order));
  int keyring = check_call(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr));
  must(order, Stage::session_keyring,
       sys::tolerate(keyring, {ENOSYS, EOPNOTSUPP},
                     sys::Weakening{"a session keyring of its own",
                                    "a kernel without keyrings has none that could be inherited"}));
  ::umask(022);

  // From here on: every capability, but only within the sandbox's user namespace, which owns none of the
  // other namespaces.
  must(order, Stage::user_namespace, check_call(::setns(order.user_namespace, CLONE_NEWUSER)));
  must(order, Stage::identity, become_sandbox_root(order));
  must(order, Stage::capabilities, sys::drop_capabilities());
  // From here on: what sandbox root keeps for good.
  must(order, Stage::no_new_privs, check_call(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  must(order, Stage::seccomp, sys::install_seccomp(order.seccomp, order.seccomp_bytes));
  char sysinfo[32];
  const char* arguments[] = {"execd", "--native", nullptr, nullptr};
  if (order.sized && keep_sysinfo_listener(sysinfo, sizeof sysinfo)) arguments[2] = sysinfo;
  static const char* const kEnvironment[] = {nullptr};
  must(order, Stage::exec,
       check_call(::syscall(SYS_execveat, order.execd, "", arguments, kEnvironment, AT_EMPTY_PATH)));
  ::_exit(127);
}

}  // namespace osb::launcher
