// osb-fault [--program | --children] PID N ERRNO: lets the Nth system call fail that is made from now on
//   by process PID, and by its new children until they become another program;
//   --program: by PID once it has become another program, and by its new children until they do;
//   --children: by what its new children have become, in all of their threads.
//
// Below libc, by ptrace: the call is not made and answers ERRNO. Prints `ready` once calls are counted,
// `injected PID NUMBER` when it has happened, and in the end `counted` with the number of calls up to there.
// Ends when its standard input does; whatever it traces then goes on untouched.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>

#include "syscall_registers.h"

namespace {

constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                          PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
constexpr int kSyscallStop = SIGTRAP | 0x80;

pid_t process_of(pid_t thread) {
  char path[64];
  ::snprintf(path, sizeof path, "/proc/%d/status", thread);
  FILE* file = ::fopen(path, "re");
  if (!file) return thread;
  int process = thread;
  char line[256];
  while (::fgets(line, sizeof line, file) && ::sscanf(line, "Tgid: %d", &process) != 1) {
  }
  ::fclose(file);
  return process;
}

class Tracer {
 public:
  enum class Whose { own, programs, childrens };
  Tracer(pid_t pid, Whose whose, long wanted, int error)
      : pid_(pid), whose_(whose), wanted_(wanted), error_(error) {}
  long counted() const { return seen_; }

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
      at_exec(pid);
    } else if (event != 0) {
      // Births of children, and group stops, which are not ours to end: a listener would be needed for those,
      // and nobody here sends SIGSTOP.
      resume(pid, 0);
    } else {
      resume(pid, signal);
    }
  }

 private:
  // An end is an end, and the kernel has no way to fail a wait for a child that is there or for a lock, to be
  // out of random bytes, or to forget who we are or what a signal does. And libc, which can do without brk
  // later, crashes without it in its first moments.
  static bool can_fail(long number) {
    switch (number) {
      case SYS_exit:
      case SYS_exit_group:
      case SYS_rt_sigreturn:
      case SYS_rt_sigprocmask:
      case SYS_rt_sigaction:
      case SYS_wait4:
      case SYS_futex:
      case SYS_getrandom:
      case SYS_brk:
      case SYS_getpid:
      case SYS_gettid:
      case SYS_getppid:
      case SYS_getuid:
      case SYS_geteuid:
      case SYS_getgid:
      case SYS_getegid:
        return false;
      default:
        return true;
    }
  }

  void at_exec(pid_t pid) {
    programs_.insert(pid);
    counts_.clear();
    if (whose_ != Whose::childrens && pid != pid_) {
      ::ptrace(PTRACE_DETACH, pid, 0, 0);  // its work for PID is done
    } else {
      resume(pid, 0);
    }
  }

  bool counts(pid_t pid) {
    if (whose_ == Whose::own) return true;
    if (whose_ == Whose::programs) return programs_.contains(pid_);
    auto [entry, is_new] = counts_.try_emplace(pid);
    if (is_new) entry->second = programs_.contains(process_of(pid));
    return entry->second;
  }

  void at_entry(pid_t pid, long number) {
    if (done_ || !can_fail(number) || !counts(pid) || ++seen_ != wanted_) return;
    done_ = true;
    victim_ = pid;
    // A close that fails has closed all the same.
    if (number != SYS_close) skip_call(pid);
    ::printf("injected %d %ld\n", pid, number);
    ::fflush(stdout);
  }

  void at_exit(pid_t pid) {
    if (pid != victim_) return;
    victim_ = 0;
    set_result(pid, -error_);
  }

  void resume(pid_t pid, int signal) {
    bool is_over = done_ && victim_ == 0;
    ::ptrace(is_over || !counts(pid) ? PTRACE_CONT : PTRACE_SYSCALL, pid, 0, signal);
  }

  pid_t pid_;
  Whose whose_;
  long wanted_, seen_ = 0;
  int error_;
  bool done_ = false;
  pid_t victim_ = 0;
  std::set<pid_t> programs_;      // processes that became another program while they were traced
  std::map<pid_t, bool> counts_;  // of a thread: whether its process is one, as far as looked up
};

int trace(pid_t pid, Tracer& tracer) {
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  int events = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
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
    if ((changed < 0 && errno == ECHILD) || waiting[1].revents != 0) return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto whose = Tracer::Whose::own;
  if (argc == 5 && ::strcmp(argv[1], "--program") == 0) whose = Tracer::Whose::programs;
  if (argc == 5 && ::strcmp(argv[1], "--children") == 0) whose = Tracer::Whose::childrens;
  char** words = argv + (whose == Tracer::Whose::own ? 1 : 2);
  if (words + 3 != argv + argc) {
    ::fprintf(stderr, "usage: osb-fault [--program | --children] PID N ERRNO\n");
    return 2;
  }
  pid_t pid = ::atoi(words[0]);
  Tracer tracer(pid, whose, ::atol(words[1]), ::atoi(words[2]));
  int status = trace(pid, tracer);
  ::printf("counted %ld\n", tracer.counted());
  return status;
}
