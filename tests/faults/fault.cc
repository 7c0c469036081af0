// osb-fault PID N ERRNO: lets the Nth system call fail that process PID, or a child born from now on, makes.
//
// Below libc, by ptrace: the call is not made and answers ERRNO. Prints `ready` once calls are counted, then
// `injected PID NUMBER` when it has happened. Ends when its standard input does; whatever it traces then goes
// on untouched. A child that has become another program is left alone: its work for PID is done.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                          PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
constexpr int kSyscallStop = SIGTRAP | 0x80;

class Tracer {
 public:
  Tracer(long wanted, int error) : wanted_(wanted), error_(error) {}

  void handle(pid_t pid, int status) {
    if (!WIFSTOPPED(status)) return;
    int signal = WSTOPSIG(status), event = status >> 16;
    if (signal == kSyscallStop) {
      struct __ptrace_syscall_info info{};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) at_entry(pid, static_cast<long>(info.entry.nr));
      if (info.op == PTRACE_SYSCALL_INFO_EXIT) at_exit(pid);
      resume(pid, 0);
    } else if (event == PTRACE_EVENT_EXEC) {
      ::ptrace(PTRACE_DETACH, pid, 0, 0);
    } else if (event != 0) {
      // Births of children, and group stops, which are not ours to end: a listener would be needed for those,
      // and nobody here sends SIGSTOP.
      resume(pid, 0);
    } else {
      resume(pid, signal);
    }
  }

 private:
  // An end is an end, and the kernel has no way to fail a wait for a child that is there.
  static bool can_fail(long number) {
    return number != SYS_exit && number != SYS_exit_group && number != SYS_rt_sigreturn &&
           number != SYS_wait4;
  }

  void at_entry(pid_t pid, long number) {
    if (done_ || !can_fail(number) || ++seen_ != wanted_) return;
    done_ = true;
    victim_ = pid;
    // A close that fails has closed all the same.
    if (number != SYS_close) ::ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L);
    ::printf("injected %d %ld\n", pid, number);
    ::fflush(stdout);
  }

  void at_exit(pid_t pid) {
    if (pid != victim_) return;
    victim_ = 0;
    ::ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), static_cast<long>(-error_));
  }

  void resume(pid_t pid, int signal) {
    ::ptrace(done_ && victim_ == 0 ? PTRACE_CONT : PTRACE_SYSCALL, pid, 0, signal);
  }

  long wanted_, seen_ = 0;
  int error_;
  bool done_ = false;
  pid_t victim_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    ::fprintf(stderr, "usage: osb-fault PID N ERRNO\n");
    return 2;
  }
  pid_t pid = ::atoi(argv[1]);
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  int events = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  Tracer tracer(::atol(argv[2]), ::atoi(argv[3]));
  if (::ptrace(PTRACE_SEIZE, pid, 0, kOptions) < 0 || ::ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0) {
    ::fprintf(stderr, "osb-fault: trace %d: %s\n", pid, ::strerror(errno));
    return 1;
  }
  int status = 0;
  ::waitpid(pid, &status, __WALL);
  tracer.handle(pid, status);
  ::printf("ready\n");
  ::fflush(stdout);
  while (true) {
    struct pollfd waiting[] = {{events, POLLIN, 0}, {0, POLLIN, 0}};
    ::poll(waiting, 2, -1);
    struct signalfd_siginfo info;
    while (::read(events, &info, sizeof info) > 0) {
    }
    pid_t changed;
    while ((changed = ::waitpid(-1, &status, __WALL | WNOHANG)) > 0) tracer.handle(changed, status);
    if (changed < 0 && errno == ECHILD) return 0;
    if (waiting[1].revents != 0) return 0;
  }
}
