#include "sys/seccomp_profile.h"

namespace osb::sys {
namespace {

constexpr const char* kFiles[] = {
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3",
    "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat",
    "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync",
    "ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr",
    "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "name_to_handle_at",
    "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
    "readahead", "readlink", "readlinkat", "readv", "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile",
    "setxattr", "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee",
    "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vmsplice", "write", "writev", "chroot"};

constexpr const char* kMemory[] = {
    "brk", "get_mempolicy", "madvise", "map_shadow_stack", "mbind", "membarrier", "memfd_create", "mincore", "mlock",
    "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "process_madvise", "remap_file_pages", "set_mempolicy", "set_mempolicy_home_node"};

// clone is here; the program in seccomp.cc refuses its namespace flags.
constexpr const char* kProcesses[] = {
    "alarm", "arch_prctl", "capget", "capset", "clone", "execve", "execveat", "exit", "exit_group", "fork", "futex",
    "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "get_thread_area", "getcpu", "getegid",
    "geteuid", "getgid", "getgroups", "getitimer", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
    "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set", "kill",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "modify_ldt", "nanosleep", "pause",
    "personality", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "process_vm_readv", "process_vm_writev",
    "ptrace", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
    "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups",
    "setitimer", "setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setuid", "sigaltstack", "signalfd", "signalfd4", "sysinfo", "tgkill", "times", "tkill", "uname", "vfork", "wait4",
    "waitid"};

constexpr const char* kTime[] = {
    "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "time", "timer_create", "timer_delete",
    "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    "adjtimex", "clock_adjtime"};  // the last two only read: setting needs a capability that is not here

// socket is here; the program in seccomp.cc limits its families.
constexpr const char* kNetwork[] = {
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom", "recvmmsg",
    "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "socket", "socketpair"};

// ioctl is here; the program in seccomp.cc refuses injecting input into a terminal.
constexpr const char* kEvents[] = {
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "epoll_wait_old", "eventfd", "eventfd2", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup",
    "io_submit", "ioctl", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select"};

constexpr const char* kIpc[] = {
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl", "msgget", "msgrcv",
    "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat", "shmctl", "shmdt", "shmget"};

constexpr SyscallGroup kAllowed[] = {
    {"files and directories of the sandbox", kFiles},
    {"its own memory", kMemory},
    {"processes, identities and signals inside its namespaces", kProcesses},
    {"reading and waiting for time", kTime},
    {"sockets inside its network namespace", kNetwork},
    {"waiting for events", kEvents},
    {"System V and POSIX IPC inside its namespace", kIpc},
};

constexpr const char* kMounts[] = {"mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick",
                                   "move_mount", "open_tree", "open_tree_attr", "mount_setattr", "statmount", "listmount",
                                   "open_by_handle_at", "quotactl", "quotactl_fd", "swapon", "swapoff"};
constexpr const char* kNamespaces[] = {"unshare", "setns", "pidfd_getfd", "kcmp"};
constexpr const char* kKernel[] = {"init_module", "finit_module", "delete_module", "create_module", "kexec_load",
                                   "kexec_file_load", "reboot", "acct", "syslog", "iopl", "ioperm", "lookup_dcookie",
                                   "nfsservctl", "uselib", "ustat", "_sysctl", "vhangup"};
constexpr const char* kSurface[] = {"bpf", "perf_event_open", "userfaultfd", "fanotify_init", "fanotify_mark",
                                    "io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "keyctl",
                                    "request_key", "move_pages", "migrate_pages"};
constexpr const char* kHost[] = {"settimeofday", "clock_settime", "stime", "sethostname", "setdomainname"};

constexpr SyscallGroup kForbidden[] = {
    {"the mount table is the boundary; nothing in a sandbox may change or look behind it", kMounts},
    {"no new namespaces: capabilities would come back in them", kNamespaces},
    {"the kernel and the machine", kKernel},
    {"large interfaces with a history of escapes, not needed by ordinary programs", kSurface},
    {"settings that belong to the host", kHost},
};

}  // namespace

std::span<const SyscallGroup> allowed_syscalls() { return kAllowed; }
std::span<const SyscallGroup> forbidden_syscalls() { return kForbidden; }

}  // namespace osb::sys
