// Probes of what holds and follows processes: seccomp, landlock, pidfds, strict path resolution, sealed
// executables.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/machine_probe.h"
#include "cli/probe_tools.h"
#include "sys/bpf.h"
#include "sys/pidfd_info.h"

// Newer than Debian 12's headers.
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

namespace osb::cli {
namespace {

Result<std::string> seccomp_filter(const Machine&) {
  auto code = sys::answer_one_call(SYS_sched_yield, SECCOMP_RET_ERRNO | EOWNERDEAD);
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail_errno("no_new_privs");
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) return fail_errno("install a filter");
  if (::syscall(SYS_sched_yield) == 0 || errno != EOWNERDEAD)
    return fail(Code::internal, "the filter has no effect");
  return "a filtered call was refused";
}

Result<std::string> landlock(const Machine&) {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 0) return fail_errno("landlock_create_ruleset");
  return fmt::format("ABI {}", abi);
}

Result<std::string> pidfd(const Machine&) {
  pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    for (;;) ::pause();
  }
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!fd.valid()) return fail_errno("pidfd_open");
  if (::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0) < 0)
    return fail_errno("pidfd_send_signal");
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(fd.get()), &info, WEXITED) < 0) return fail_errno("waitid");
  return "signals and waits never hit a recycled pid";
}

Result<std::string> pidfd_exit_info(const Machine&) {
  pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    for (;;) ::pause();
  }
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!fd.valid()) return fail(Code::unsupported, "no pidfd");
  auto status = sys::exit_status_of(fd.get());
  if (!status || WTERMSIG(*status) != SIGKILL) {
    return fail(Code::unsupported, "PIDFD_GET_INFO does not tell how a process ended");
  }
  return "how a process ended is known to whoever holds its pidfd";
}

Result<std::string> openat2_beneath(const Machine& machine) {
  auto scratch = TRY(ScratchDir::create(machine.work_dir));
  auto dir = TRY(open_at(AT_FDCWD, scratch.path(), O_RDONLY | O_DIRECTORY));
  if (::symlinkat("/etc/passwd", dir.get(), "link") < 0) return fail_errno("symlink");
  TRY(write_file_at(dir.get(), "file", "x", O_CREAT));
  TRY(in_context("openat2", open_beneath(dir.get(), "file", O_RDONLY)));
  if (open_beneath(dir.get(), "link", O_RDONLY) || open_beneath(dir.get(), "../../etc/passwd", O_RDONLY)) {
    return fail(Code::internal, "a path left its directory");
  }
  return "a path cannot leave its directory";
}

Result<Fd> sealed_copy_of(const char* path, unsigned memfd_flags, int seals) {
  Fd copy(::memfd_create("osb-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING | memfd_flags));
  if (!copy.valid()) return fail_errno("memfd_create");
  TRY(write_all(copy.get(), TRY(read_file(path, 8 << 20))));
  if (::fcntl(copy.get(), F_ADD_SEALS, seals) < 0) return fail_errno("seal");
  return copy;
}

Result<void> execute(const Fd& program) {
  int status = TRY(exit_status_of([&] {
    char name[] = "true";
    char* argv[] = {name, nullptr};
    char* env[] = {nullptr};
    ::syscall(SYS_execveat, program.get(), "", argv, env, AT_EMPTY_PATH);
    return errno;
  }));
  if (status) return fail_errno("execute", status);
  return {};
}

constexpr int kWriteSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

Result<std::string> memfd_execution(const Machine&) {
  auto copy = sealed_copy_of("/bin/true", MFD_EXEC, kWriteSeals);
  if (!copy && copy.error().sys_errno == EINVAL)
    copy = sealed_copy_of("/bin/true", 0, kWriteSeals);  // before Linux 6.3
  if (!copy) return std::unexpected(copy.error());
  TRY(execute(*copy));
  return "execd runs from memory that nobody can change";
}

Result<std::string> memfd_seal_exec(const Machine&) {
  auto copy = TRY(sealed_copy_of("/bin/true", MFD_EXEC, kWriteSeals | F_SEAL_EXEC));
  if (::fchmod(copy.get(), 0600) == 0)
    return fail(Code::unsupported, "the mode of the memory file can still change");
  TRY(execute(copy));
  return "its mode cannot change either";
}

constexpr Probe kProbes[] = {
    {"seccomp filters", Need::required, seccomp_filter,
     "the sandbox could ask the kernel for anything: nothing starts",
     "a kernel with CONFIG_SECCOMP_FILTER; in a container allow seccomp in its own profile"},
    {"landlock", Need::wanted, landlock, "one layer of defence fewer",
     "boot with landlock in the lsm= list (CONFIG_SECURITY_LANDLOCK)"},
    {"pidfd", Need::required, pidfd, "processes cannot be followed without races", "Linux 5.4 or newer"},
    {"pidfd exit information", Need::wanted, pidfd_exit_info,
     "after a restart of the service the cause of a sandbox's end may be unknown", "Linux 6.15 or newer"},
    {"openat2", Need::required, openat2_beneath, "paths written by a sandbox cannot be opened safely",
     "Linux 5.6 or newer"},
    {"executable memory files", Need::required, memfd_execution, "execd cannot be started",
     "sysctl vm.memfd_noexec=0, and no noexec policy on memory files"},
    {"sealed mode of memory files", Need::note, memfd_seal_exec, "one layer of defence fewer",
     "Linux 6.3 or newer"},
};

}  // namespace

std::span<const Probe> process_probes() { return kProbes; }

}  // namespace osb::cli
