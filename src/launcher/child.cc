#include "launcher/child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/error.h"
#include "launcher/root_builder.h"
#include "launcher/rootless.h"
#include "launcher/runsc_bundle.h"
#include "launcher/runsc_child.h"
#include "launcher/settings.h"
#include "sys/caps.h"
#include "sys/file_privileges.h"
#include "sys/mount.h"
#include "sys/seccomp.h"
#include "sys/weakening.h"

namespace osb::launcher {
namespace {

// Enough that it comes next however many processes of the sandbox wait, and no more: with -15 it read a
// program's output in so many small pieces that a stream came at 0.6 of its speed.
constexpr int kExecdNice = -8;

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

int move_to(int group) { return ::write(group, "0", 1) < 0 ? -errno : 0; }

// The namespace of control groups begins at those in which a process is when it makes one: it is to be that
// of everything that execd will start.
int look_from_work(const ChildOrder& order) {
  int status = order.work_group >= 0 ? move_to(order.work_group) : 0;
  if (status == 0) status = check_call(::unshare(CLONE_NEWCGROUP));
  if (status == 0 && order.work_group >= 0) status = move_to(order.daemon_group);
  return status;
}

int start_from_nothing(const ChildOrder& order) {
  if (::setns(order.nothing, CLONE_NEWNS) < 0) return -errno;
  // A copy of its own: the one that all sandboxes start from stays empty.
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
    // Not for execd, which serves all that runs in the sandbox: it gives the limit to what it starts, and
    // nothing else ever starts there.
    auto most = static_cast<rlim_t>(order.open_files);
    struct rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return -errno;
    if (files.rlim_max < most) files = {most, most};
    if (::setrlimit(RLIMIT_NOFILE, &files) < 0) return -errno;
  }
  if (order.first_in_group && !order.runsc && ::setpriority(PRIO_PROCESS, 0, kExecdNice) < 0) return -errno;
  if (order.processes > 0) {
    auto most = static_cast<rlim_t>(order.processes);
    const struct rlimit processes{most, most};
    if (::setrlimit(RLIMIT_NPROC, &processes) < 0) return -errno;
  }
  // One byte: no core file, and, unlike zero, no core handler of the host either.
  const struct rlimit core{1, 1};
  return check_call(::setrlimit(RLIMIT_CORE, &core));
}

// Descriptors of execd: 0-2 the sandbox's null device, 3 and 4 its listeners, 5 the group for what it starts,
// if there is one. All others close at exec. Nothing is opened here: this process still has root's rights,
// and the root around it is the image's.
int arrange_descriptors(const ChildOrder& order, int null) {
  if (null < 0) return null;
  // First out of the way of 0-4, then into place; dup2 clears close-on-exec.
  int api = ::fcntl(order.api_listener, F_DUPFD_CLOEXEC, 16),
      control = ::fcntl(order.control_listener, F_DUPFD_CLOEXEC, 16);
  int work = order.work_group < 0 ? -1 : ::fcntl(order.work_group, F_DUPFD_CLOEXEC, 16);
  if (api < 0 || control < 0 || (work < 0 && order.work_group >= 0)) return -errno;
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(null, fd) < 0) return -errno;
  }
  if (::dup2(api, 3) < 0 || ::dup2(control, 4) < 0) return -errno;
  if (work >= 0 && ::dup2(work, 5) < 0) return -errno;
  return check_call(::syscall(SYS_close_range, work >= 0 ? 6 : 5, ~0U, CLOSE_RANGE_CLOEXEC));
}

void look_through_directories(const ChildOrder& order) {
  for (size_t i = 0; i < order.step_count; ++i) {
    if (order.steps[i].looked_through < 0) continue;
    int status = sys::find_file_privileges(order.steps[i].looked_through);
    if (status < 0) give_up(order, kLookStage + static_cast<uint32_t>(i), status);
  }
}

int drop_capabilities(const ChildOrder& order) {
  return order.modes_seccomp ? sys::drop_capabilities(sys::kFilePrivilegeCapabilities)
                             : sys::drop_capabilities();
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
      return "make a cgroup namespace of the group for what execd starts";
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
    case Stage::stage:
      return "make a root for runsc";
    case Stage::guest:
      return "start execd under runsc, whose words are in the log";
  }
  return "unknown stage";
}

void run_child(const ChildOrder& order) {
  // Rights held here: the launcher's (root on the host), in fresh pid, ipc and uts namespaces.
  sigset_t none;
  ::sigemptyset(&none);
  // The launcher blocks what it reads from a descriptor; a mask, and what is ignored, survive exec.
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::setsid();
  ::umask(0);
  if (order.rootless) must(order, Stage::record, wait_until_recorded(order.go, order.go_writer));
  must(order, Stage::cgroup_v1, join_v1_groups(order));
  must(order, Stage::cgroup_namespace, look_from_work(order));
  // In the sandbox's own groups: a large directory is its own work.
  look_through_directories(order);
  int disk = -1;
  // While loop devices and the state directory have names: a mount namespace that starts empty has neither.
  if (order.disk.bytes > 0) {
    must(order, Stage::disk, check_call(::chdir(order.state_dir)));
    disk = make_disk(order.disk);
    must(order, Stage::disk, disk);
  }
  must(order, Stage::mounts, order.nothing >= 0 ? start_from_nothing(order) : start_from_the_host(order));
  if (disk >= 0 && order.nothing < 0) {
    must(order, Stage::disk, sys::attach_mount(disk, AT_FDCWD, order.disk.directory));
    ::close(disk);
    disk = -1;
  }
  // Before the root is built: a sysfs shows the network of whoever mounts it.
  must(order, Stage::network, check_call(::setns(order.network_namespace, CLONE_NEWNET)));
  int empty = -1;
  if (order.nothing >= 0) {
    empty = check_call(::open("/", O_PATH | O_CLOEXEC));
    must(order, Stage::mounts, empty);
  }
  if (order.runsc) must(order, Stage::stage, make_stage(order));
  RootBuilder builder(order, empty, disk);
  for (size_t i = 0; i < order.step_count; ++i) {
    if (order.runsc && !is_for_runsc(order.steps[i].step->kind)) continue;
    int status = builder.run(order.steps[i]);
    if (status < 0) give_up(order, static_cast<uint32_t>(i), status);
  }
  if (order.runsc) {
    // All of it is work of the sandbox: its kernel runs where its programs do.
    if (order.work_group >= 0) must(order, Stage::cgroup_v1, move_to(order.work_group));
    must(order, Stage::limits, set_limits(order));
    guard_runsc(order);
  }
  must(order, Stage::root, enter(order, builder.root()));
  must(order, Stage::descriptors, arrange_descriptors(order, builder.null()));
  // What execd starts is as the launcher is.
  char work_nice[24];
  std::snprintf(work_nice, sizeof work_nice, "--work-nice=%d", ::getpriority(PRIO_PROCESS, 0));
  // Before the user namespace: a lower nice value takes a capability over the host's.
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
  must(order, Stage::capabilities, drop_capabilities(order));
  // From here on: what sandbox root keeps for good.
  must(order, Stage::no_new_privs, check_call(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  // Last, because it forbids most of what is above. By now nobody here has CAP_SYS_ADMIN over this namespace,
  // so the kernel takes a filter only after no_new_privs.
  must(order, Stage::seccomp, sys::install_seccomp(order.seccomp, order.seccomp_bytes));
  if (order.modes_seccomp)
    must(order, Stage::seccomp, sys::install_seccomp(order.modes_seccomp, order.modes_seccomp_bytes));
  char sysinfo[32], open_files[48];
  const char* arguments[] = {"execd", "--native", nullptr, nullptr, nullptr, nullptr, nullptr};
  size_t count = 2;
  if (order.sized && keep_sysinfo_listener(sysinfo, sizeof sysinfo)) arguments[count++] = sysinfo;
  if (order.work_group >= 0) arguments[count++] = "--work-group=5";
  if (order.first_in_group) arguments[count++] = work_nice;
  if (order.open_files > 0) {
    std::snprintf(open_files, sizeof open_files, "--work-open-files=%lld",
                  static_cast<long long>(order.open_files));
    arguments[count++] = open_files;
  }
  // By descriptor: no path of the image leads to what is executed.
  static const char* const kEnvironment[] = {nullptr};
  must(order, Stage::exec,
       check_call(::syscall(SYS_execveat, order.execd, "", arguments, kEnvironment, AT_EMPTY_PATH)));
  ::_exit(127);
}

}  // namespace osb::launcher
