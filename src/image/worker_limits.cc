#include "image/worker_limits.h"

#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

#include "sys/file_worker.h"

namespace osb::image {
namespace {

// zstd windows and xz dictionaries are the largest things that an archive can ask for.
constexpr rlim_t kMemoryBytes = 3ull << 30;
constexpr rlim_t kDescriptors = 256;

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
    SYS_fgetxattr,
    SYS_flistxattr,
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

}  // namespace

int set_worker_limits(uint64_t max_file_bytes) {
  return sys::lower_limits(
      {{RLIMIT_AS, kMemoryBytes}, {RLIMIT_NOFILE, kDescriptors}, {RLIMIT_FSIZE, max_file_bytes}});
}

int install_worker_seccomp() {
  sys::Bpf bpf;
  sys::load_native_call(bpf);
  auto not_clone3 = bpf.label(), not_clone = bpf.label(), process = bpf.label(), not_prctl = bpf.label();
  // Threads yes, through the call whose flags can be seen; namespaces no.
  bpf.if_not_equal(SYS_clone3, not_clone3);
  bpf.answer(SECCOMP_RET_ERRNO | ENOSYS);
  bpf.place(not_clone3);
  bpf.if_not_equal(SYS_clone, not_clone);
  bpf.load(offsetof(seccomp_data, args[0]));
  bpf.if_no_bit(CLONE_THREAD, process);
  bpf.answer(SECCOMP_RET_ALLOW);
  bpf.place(process);
  bpf.answer(SECCOMP_RET_KILL_PROCESS);
  bpf.place(not_clone);
  // Names of threads are cosmetics of the C++ library.
  bpf.if_not_equal(SYS_prctl, not_prctl);
  bpf.answer(SECCOMP_RET_ERRNO | EPERM);
  bpf.place(not_prctl);
  return sys::install_allowing(bpf, kCalls);
}

}  // namespace osb::image
