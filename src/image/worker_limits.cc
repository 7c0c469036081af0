#include "image/worker_limits.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "sys/seccomp.h"

namespace osb::image {
namespace {

// zstd windows and xz dictionaries are the largest things that an archive can ask for.
constexpr rlim_t kMemoryBytes = 3ull << 30;
constexpr rlim_t kDescriptors = 256;

constexpr uint32_t bit(int cap) { return 1u << cap; }
constexpr uint32_t kKept =
    bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_FOWNER) | bit(CAP_FSETID);
constexpr uint32_t kKeptHigh = 0;
static_assert(CAP_SETFCAP == 31);

// Reading and writing files, memory, threads, time.
constexpr int kCalls[] = {
    SYS_read,
    SYS_write,
    SYS_pread64,
    SYS_pwrite64,
    SYS_readv,
    SYS_writev,
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
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_fchownat,
    SYS_fchown,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_utimensat,
    SYS_ftruncate,
    SYS_fsetxattr,
    SYS_getdents64,
    SYS_fcntl,
    SYS_dup,
    SYS_fstatfs,
    SYS_readlinkat,
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_gettid,
    SYS_getpid,
    SYS_tgkill,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
    SYS_prlimit64,
    SYS_sysinfo,
#ifdef SYS_open
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_unlink,
    SYS_access,
    SYS_readlink,
    SYS_time,
#endif
};

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture's audit number"
#endif

}  // namespace

int set_worker_limits(uint64_t max_file_bytes) {
  const struct {
    __rlimit_resource_t what;
    rlim_t value;
  } kLimits[] = {{RLIMIT_CORE, 1},  // with zero, a core handler of the host would still run
                 {RLIMIT_AS, kMemoryBytes},
                 {RLIMIT_NOFILE, kDescriptors},
                 {RLIMIT_FSIZE, max_file_bytes}};
  for (const auto& limit : kLimits) {
    struct rlimit both{limit.value, limit.value};
    if (::setrlimit(limit.what, &both) < 0) return -errno;
  }
  return 0;
}

int drop_worker_capabilities() {
  // File capabilities of the archive are set with CAP_SETFCAP.
  constexpr uint32_t kLow = kKept | bit(CAP_SETFCAP);
  for (int cap = 0; cap <= 63; ++cap) {
    bool kept = cap < 32 && (kLow & bit(cap));
    if (!kept && ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
      if (errno == EINVAL) break;  // past the last capability of this kernel
      return -errno;
    }
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {{kLow, kLow, 0}, {kKeptHigh, kKeptHigh, 0}};
  return ::syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int install_worker_seccomp() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      // Threads yes, through the call whose flags can be seen; namespaces no.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      // Names of threads are cosmetics of the C++ library.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  for (int call : kCalls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  return sys::install_seccomp(program.data(), program.size() * sizeof(sock_filter));
}

}  // namespace osb::image
