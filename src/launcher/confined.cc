#include "launcher/confined.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

#include "sys/file_worker.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr uint64_t kNothingRuns = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
constexpr int kSocketFd = 3, kFirstDirectoryFd = 4;
constexpr rlim_t kMemoryBytes = 1ull << 30;
constexpr rlim_t kDescriptors = 8192;  // two for each level of a tree (sys/tree_copy.h)

// Reading and writing files, memory, time, the socket.
constexpr int kCalls[] = {
    SYS_read,
    SYS_write,
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_openat,
    SYS_openat2,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_symlinkat,
    SYS_linkat,
    SYS_fchownat,
    SYS_fchown,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_utimensat,
    SYS_ftruncate,
    SYS_fsetxattr,
    SYS_fgetxattr,
    SYS_flistxattr,
    SYS_getdents64,
    SYS_fcntl,
    SYS_readlinkat,
    SYS_copy_file_range,
    SYS_ioctl,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_futex,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_gettid,
    SYS_getpid,
    SYS_tgkill,
    SYS_clock_gettime,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
};

int install_filter() {
  sys::Bpf bpf;
  sys::load_native_call(bpf);
  auto not_ioctl = bpf.label(), clone_file = bpf.label();
  // Of ioctl the one that shares the data of files; to anything else there is no such device here.
  bpf.if_not_equal(SYS_ioctl, not_ioctl);
  bpf.load(offsetof(seccomp_data, args[1]));
  bpf.if_equal(0x40049409, clone_file);  // FICLONE
  bpf.answer(SECCOMP_RET_ERRNO | ENOTTY);
  bpf.place(clone_file);
  bpf.answer(SECCOMP_RET_ALLOW);
  bpf.place(not_ioctl);
  return sys::install_allowing(bpf, kCalls);
}

// Into an empty root that nobody can write to; what was there goes.
int leave_the_host(const char* place) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return -errno;
  const sys::MountOption options[] = {{"mode", "0555"}, {"size", "4096"}, {"nr_inodes", "2"}};
  int empty = sys::mount_filesystem("tmpfs", options, 3, kNothingRuns | MOUNT_ATTR_RDONLY);
  if (empty < 0) return empty;
  if (int status = sys::attach_mount(empty, AT_FDCWD, place); status < 0) return status;
  if (::fchdir(empty) < 0 || ::syscall(SYS_pivot_root, ".", ".") < 0) return -errno;
  if (::umount2(".", MNT_DETACH) < 0) return -errno;
  return check_call(::chdir("/"));
}

// The socket and the directories at fixed numbers, everything else closed.
int arrange_descriptors(int socket, const std::vector<int>& directories, int space, int& moved_space) {
  constexpr int kAbove = 512;
  std::vector<int> moved;
  moved.push_back(::fcntl(socket, F_DUPFD_CLOEXEC, kAbove));
  for (int fd : directories) moved.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, kAbove));
  moved.push_back(::fcntl(space, F_DUPFD_CLOEXEC, kAbove));
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return -errno;
  for (int fd : {0, 1, 2}) {
    if (::dup2(null, fd) < 0) return -errno;
  }
  int next = kSocketFd;
  for (int fd : moved) {
    if (fd < 0 || ::dup3(fd, next++, O_CLOEXEC) < 0) return -errno;
  }
  moved_space = next - 1;
  return check_call(::syscall(SYS_close_range, next, ~0U, 0));
}

Result<void> step(const char* what, int status) {
  if (status < 0) return fail_errno(what, -status);
  return {};
}

Result<void> confine(const ConfinedOrder& order, int socket) {
  // Rights held here: the launcher's, in fresh namespaces.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(0);
  int space = -1;
  TRY(step("arrange descriptors",
           arrange_descriptors(socket, order.directories, order.user_namespace, space)));
  TRY(step("leave the host's files", leave_the_host(order.place.c_str())));
  TRY(step("enter the user namespace", check_call(::setns(space, CLONE_NEWUSER))));
  ::close(space);
  // From here on: every capability, but only within a user namespace that owns nothing but files.
  TRY(step("change identity", sys::become_root_of_nothing()));
  TRY(step("set limits", sys::lower_limits({{RLIMIT_AS, kMemoryBytes}, {RLIMIT_NOFILE, kDescriptors}})));
  TRY(step("drop capabilities", sys::keep_file_capabilities()));
  // The change of identity cleared the death signal.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  TRY(step("set no_new_privs", check_call(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))));
  return step("install the seccomp program", install_filter());
}

[[noreturn]] void run_confined(const ConfinedOrder& order, int socket) {
  auto confined = confine(order, socket);
  if (!confined) {
    // Its socket may not be in its place yet.
    std::string text = "e" + std::to_string(static_cast<int>(confined.error().code)) + " " +
                       std::to_string(confined.error().sys_errno) + " confine: " + confined.error().message;
    (void)!::write(socket, text.data(), text.size());
    (void)!::write(kSocketFd, text.data(), text.size());
    ::_exit(1);
  }
  std::vector<int> directories;
  for (size_t i = 0; i < order.directories.size(); ++i)
    directories.push_back(kFirstDirectoryFd + static_cast<int>(i));
  order.job(directories, kSocketFd);
  ::_exit(0);
}

}  // namespace

Result<Fd> mapped_directory(int directory, int user_namespace) {
  Fd mount(sys::clone_mount(directory, ""));
  if (!mount.valid()) return fail_errno("copy the mount of a directory", -mount.get());
  if (int status = sys::idmap_mount(mount.get(), user_namespace); status < 0)
    return fail_errno("map the ids of the state directory (its file system must support id-mapped mounts)",
                      -status);
  if (int status = sys::restrict_mount(mount.get(), kNothingRuns); status < 0)
    return fail_errno("restrict the mount of a directory", -status);
  return open_at(mount.get(), ".", O_RDONLY | O_DIRECTORY);
}

Result<Fd> readable_directory(int directory) {
  Fd mount(sys::clone_mount(directory, ""));
  if (!mount.valid()) return fail_errno("copy the mount of a directory", -mount.get());
  if (int status = sys::restrict_mount(mount.get(), kNothingRuns | MOUNT_ATTR_RDONLY); status < 0)
    return fail_errno("restrict the mount of a directory", -status);
  return open_at(mount.get(), ".", O_RDONLY | O_DIRECTORY);
}

Result<ConfinedProcess> start_confined(const ConfinedOrder& order) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  ConfinedProcess process{-1, Fd(pair[0])};
  Fd theirs(pair[1]);
  pid_t pid = sys::clone_file_worker();
  if (pid == 0) run_confined(order, theirs.get());
  if (pid < 0) return fail_errno("clone a process", -pid);
  process.pid = pid;
  return process;
}

void end_confined(ConfinedProcess& process) {
  if (process.pid <= 0) return;
  ::kill(process.pid, SIGKILL);  // ours and not waited for
  while (::waitpid(process.pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  process.pid = -1;
}

}  // namespace osb::launcher
